// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <tuple>

#include <fmt/format.h>

#include <tessera/io/protobuf.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/plan/action_text.hpp>
#include <tessera/predict/chakra.hpp>

namespace tessera {
namespace {

// Numbers of the schema et_def.proto, version 1.0.0: github.com/mlcommons/chakra.
enum class NodeType : std::uint8_t { kernel = 4, send = 5, receive = 6, collective = 7 };
enum class Value : std::uint8_t { int32 = 7, int64 = 9, uint64 = 13, boolean = 27, text = 29 };
constexpr std::array<Size, 5> comm_types{0, 7, 2, 5, 6};  // by Operation

/// Return an attribute of a node.
std::string attribute(std::string_view name, Value type, Size value) {
  return bytes_field(10, bytes_field(1, name) + integer_field(static_cast<Size>(type), value));
}
std::string attribute(std::string_view name, std::string_view value) {
  return bytes_field(10, bytes_field(1, name) + bytes_field(static_cast<Size>(Value::text), value));
}

/// The groups of ranks of a plan's calls. Their numbers do not depend on which ranks ask.
class CallGroups {
 public:
  explicit CallGroups(const Plan& plan) : mesh_(plan.input.mesh) {
    Size next = 1;  // simulators take 0 for all ranks
    for (const AxisSet axes : axes_of_calls(plan))
      for (const bool of_ends : {false, true})
        if (mesh_.group_size(axes) > 1 &&
            first_.try_emplace({mesh_.group_name(axes), of_ends}, next).second)
          next += mesh_.num_ranks();
  }

  /// Returns the number of a rank's group along axes. `of_ends`: only its first and last rank.
  Size number(AxisSet axes, bool of_ends, Size rank) {
    const Size first = mesh_.first_of_group(axes, rank),
               number = first_.at({mesh_.group_name(axes), of_ends}) + first;
    std::vector<Size>& ranks = used[std::to_string(number)];
    if (!ranks.empty()) return number;
    ranks = mesh_.group(axes, rank);
    if (of_ends) ranks = {ranks.front(), ranks.back()};
    return number;
  }

  std::map<std::string, std::vector<Size>> used{};  ///< ranks of each group that was asked for

 private:
  const MeshShape& mesh_;
  std::map<std::pair<std::string, bool>, Size> first_;  ///< number of rank 0's group
};

/// Writes the trace of a rank.
struct TraceWriter {
  const Plan& plan;
  const CostOf& cost;
  CallGroups& groups;
  Size rank;
  std::ostream& out;

  const MeshShape& mesh = plan.input.mesh;
  const StagePlan& stage = plan.stage(rank);
  WorkSizes sizes = work_sizes(plan, rank);
  ListedAction now{};           ///< the current action
  Size id = 0;                  ///< of the latest node
  std::vector<Size> last{};     ///< the nodes on which the next action depends
  std::map<Size, Size> next{};  ///< by group, the latest call, which its next one follows
  std::map<std::tuple<AxisSet, Operation, Size>, Size> started{};  ///< calls that are not finished
  double microseconds = 0;                                         ///< of all kernels
  Size uneven = 0;                                                 ///< calls with uneven shares

  void write() {
    const std::string mesh_attribute = bytes_field(1, "mesh") + bytes_field(29, mesh.to_string());
    message(bytes_field(1, "1.0.0") + bytes_field(2, mesh_attribute));  // the metadata
    for_each_action(stage.actions, stage.repeated, [&](std::size_t i, Size microbatch) {
      now = {stage.actions[i].action, microbatch};
      if (const auto* message = now.as<Message>()) return send_or_receive(*message);
      for (const Work& work : work_of(now.action, microbatch, plan, sizes)) {
        if (work.call)
          collective(*work.call, work.number);
        else if (!work.is_empty())
          kernel(work);
      }
    });
  }

  void message(const std::string& bytes) { out << varint(bytes.size()) << bytes; }

  /// Writes a node, which depends on the nodes that are complete before its action and on `before`,
  /// if that is not 0.
  void node(NodeType type, const std::string& fields, Size before = 0) {
    std::string complete;
    for (const Size one : last) complete += varint(static_cast<std::uint64_t>(one));
    if (before != 0 && std::find(last.begin(), last.end(), before) == last.end())
      complete += varint(static_cast<std::uint64_t>(before));
    message(integer_field(1, ++id) + bytes_field(2, to_string(now, plan, stage)) +
            integer_field(3, static_cast<Size>(type)) + bytes_field(5, complete) + fields +
            attribute("is_cpu_op", Value::boolean, 0));
  }

  /// Durations are whole microseconds, and their sum is rounded once.
  void kernel(const Work& work) {
    const Size before = std::llround(microseconds);
    if (cost) microseconds += 1e6 * cost(work).seconds;
    node(NodeType::kernel,
         integer_field(7, std::llround(microseconds) - before) +
             attribute("num_ops", Value::int64, std::max<Size>(1, std::llround(work.flops))) +
             attribute("tensor_size", Value::uint64, std::llround(work.bytes)));
    last = {id};
  }

  void collective(const ActionCall& of, Size number) {
    const Size group = groups.number(of.ranks, now.as<ReduceTied>() != nullptr, rank),
               ranks = mesh.group_size(of.ranks);
    const auto [whole, are_uneven] = shares_of(of, ranks);
    const bool counts_shares =
        of.operation == Operation::all_gather || of.operation == Operation::all_to_all;
    const Size type = comm_types.at(static_cast<std::size_t>(of.operation)),
               bytes = counts_shares ? (whole + ranks - 1) / ranks : whole;
    call(of, number, NodeType::collective, next[group],
         attribute("comm_type", Value::int64, type) + attribute("comm_size", Value::int64, bytes) +
             attribute("pg_name", std::to_string(group)) +
             attribute("payload_bytes", Value::int64, of.bytes) +
             (are_uneven ? attribute("uneven_shares", Value::boolean, 1) : ""));
    if (of.is_issued) next[group] = id, uneven += are_uneven ? 1 : 0;
  }

  /// A message goes to the rank with the peer's coordinate along its axis and equal other ones.
  void send_or_receive(const Message& message) {
    const ActionCall of = *call_of(now.action, now.microbatch, plan, sizes.calls);
    const Size tag = message.tag * plan.input.microbatches + now.microbatch;
    const std::size_t axis = *message.ranks.begin();
    const Size at = mesh.coordinate(rank, axis), ranks = mesh.axes()[axis].size,
               around = (at + (message.sends ? 1 : ranks - 1)) % ranks,
               to = message.peer < 0 ? around : message.peer,
               peer = rank + (to - at) * mesh.stride(axis);
    call(of, tag, message.sends ? NodeType::send : NodeType::receive, 0,
         attribute("comm_src", Value::int32, message.sends ? rank : peer) +
             attribute("comm_dst", Value::int32, message.sends ? peer : rank) +
             attribute("comm_tag", Value::int32, tag) +
             attribute("comm_size", Value::int64, of.bytes));
  }

  /// Writes the node of a call when it starts. What comes next depends on a whole call at once, and
  /// on a started one when it is finished.
  void call(const ActionCall& of, Size number, NodeType type, Size before,
            const std::string& fields) {
    const std::tuple key(of.ranks, of.operation, number);
    if (of.is_issued)
      node(type, fields + attribute("axis", mesh.group_name(of.ranks)) + attribute("what", of.what),
           before);
    if (of.phase == Phase::start) started[key] = id;
    if (of.phase == Phase::finish) last.push_back(started.extract(key).mapped());
    if (of.phase == Phase::whole && of.is_issued) last = {id};
  }

  /// Returns the bytes that the ranks hold together before the call or after it, and whether their
  /// shares of it differ.
  std::pair<Size, bool> shares_of(const ActionCall& call, Size ranks) const {
    const auto of_bucket = [&](const BucketMove& move) {
      const BucketPlan& bucket = stage.parameters.buckets[move.bucket];
      const Size moved = bucket.moves_share(move.ranks)
                             ? sizes.calls.state.buckets[move.bucket].share.count
                             : bucket.elements;
      return std::pair(call.bytes, moved % ranks != 0);
    };
    if (const auto* gather = now.as<Gather>()) return of_bucket(*gather);
    if (const auto* directions = now.as<MoveDirections>()) {
      if (directions->operation != Operation::all_to_all) return of_bucket(*directions);
      const Size whole =
          stage.parameters.buckets[directions->bucket].elements * size_of(plan.input.state_type);
      return {whole, call.bytes * ranks != whole};
    }
    if (const auto* scatter = now.as<ReduceScatter>()) return of_bucket(*scatter);
    const auto* move = now.as<Move>();
    if (move == nullptr) return {call.bytes, false};
    const Slot &from = stage.slots[move->from], &to = stage.slots[move->to];
    const Size samples = sizes.calls.samples.in(now.microbatch, from.sample_axes & to.sample_axes),
               whole = num_elements(local_shape(from, samples, mesh, rank, move->axis));
    const auto is_uneven = [&](const Slot& slot) {
      const Size own = own_elements(slot, plan, sizes.calls, now.microbatch);
      return own != whole && own * ranks != whole;
    };
    return {whole * size_of(from.type), is_uneven(from) || is_uneven(to)};
  }
};

}  // namespace

Size write_chakra(const Plan& plan, const CostOf& cost, const std::vector<Size>& ranks,
                  const std::filesystem::path& path) {
  CallGroups groups(plan);
  Size uneven = 0;
  for (const Size rank : ranks)
    write_whole(fmt::format("{}.{}.et", path.string(), rank), [&](std::ostream& out) {
      TraceWriter writer{plan, cost, groups, rank, out};
      writer.write();
      uneven += writer.uneven;
    });
  write_json(path.string() + ".groups.json", groups.used);
  return uneven;
}

}  // namespace tessera
