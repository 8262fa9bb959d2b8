// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/predict/link_sharing.hpp>
#include <tessera/predict/machine.hpp>
#include <tessera/predict/wire_model.hpp>

namespace tessera {
namespace {

constexpr double eager_bytes = 4096;  // of the longest message that is sent without a rendezvous

/// The slowest links between the ranks of the groups of one call.
class Path {
 public:
  /// `size` is the number of ranks of a group. `leaving(width)` returns the largest number of
  /// groups that leave a block of `width` consecutive ranks. All groups call at the same time, and
  /// share its link.
  template <class Leaving>
  Path(const Machine& machine, Size size, const Leaving& leaving) : size_(size) {
    double rate = std::numeric_limits<double>::infinity();
    Size sharing = 1;
    for (const NetworkLevel& level : machine.network) {
      if (level.latency_seconds >= link_.latency_seconds) link_ = level;
      rate = std::min(rate, level.bytes_per_second / static_cast<double>(sharing));
      link_.bytes_per_second = rate;
      sharing = leaving(level.ranks);
      if (sharing == 0) return;
    }
  }

  double seconds(Operation operation, double bytes) const {
    return call_seconds(link_, operation, size_, bytes);
  }

 private:
  Size size_;
  NetworkLevel link_;  ///< with the largest latency and the least bandwidth of the group's levels
};

/// Returns the bytes that a step uses. One batch is small beside the data set.
Size used_in_a_step(const MemoryPlan& memory) { return memory.total() - memory.data; }

/// Returns the name of the types of a plan's products in a machine file.
std::string product_type(const PlanInput& input) {
  return std::string(input.precision == MatmulPrecision::strict ? name_of(input.compute_type)
                                                                : name_of(input.precision));
}

/// The function that cost_on() returns.
class MachineCost {
 public:
  MachineCost(const Machine& machine, const Plan& plan)
      : machine_(machine),
        flops_per_second_(product_rate(machine, plan.input)),
        bytes_per_second_(machine.memory_rate(used_in_a_step(plan.memory(0)))) {
    const MeshShape& mesh = plan.input.mesh;
    for (const AxisSet axes : axes_of_calls(plan))
      if (const Size ranks = mesh.group_size(axes); ranks > 1)
        paths_.emplace(axes, Path(machine, ranks,
                                  [&](Size width) { return groups_leaving(mesh, axes, width); }));
    std::set<std::pair<Size, Size>> pairs;
    if (const Size last = std::ssize(plan.stages) - 1; last > 0) pairs.emplace(0, last);
    for (Size from = 0; from < std::ssize(plan.stages); ++from)
      for (const ListedAction& listed : plan.stages[from].actions)
        if (const auto* message = listed.as<Message>(); message && message->peer >= 0)
          pairs.emplace(from, message->peer);
    for (const auto& pair : pairs)
      between_.emplace(pair, Path(machine, 2, [&](Size width) {
                         return messages_leaving(mesh, pair.first, pair.second, width);
                       }));
  }

  Cost operator()(const Work& work) const {
    if (work.call) {
      const Path& path =
          work.peer >= 0 ? between_.at({work.stage, work.peer}) : paths_.at(work.call->ranks);
      const double seconds = path.seconds(work.call->operation, work.bytes),
                   copying = work.copied / bytes_per_second_,
                   exposed = (1 - machine_.hidden(work.call->operation)) * seconds;
      return {.seconds = seconds + copying, .exposed = exposed + copying};
    }
    return cost_of_kernel(machine_, work, flops_per_second_, bytes_per_second_);
  }

 private:
  Machine machine_;
  double flops_per_second_, bytes_per_second_;
  std::map<AxisSet, Path> paths_;
  std::map<std::pair<Size, Size>, Path> between_;  ///< stages
};

}  // namespace

DeviceTraits Machine::traits() const {
  const auto is_native = [&](DType half) {
    return std::find(emulated_products.begin(), emulated_products.end(), name_of(half)) ==
           emulated_products.end();
  };
  return {device, device == Device::gpu, is_native(DType::bfloat16), is_native(DType::float16),
          std::max<Size>(1, threads)};
}

double Machine::memory_rate(Size bytes) const {
  const auto larger = std::ranges::lower_bound(caches, bytes, {}, &CacheLevel::bytes);
  const double rate = larger == caches.end() ? memory_bytes_per_second : larger->bytes_per_second;
  if (larger == caches.begin()) return rate;
  const CacheLevel& smaller = *std::prev(larger);
  const auto octaves_to = [&](Size to) {
    return std::log2(static_cast<double>(to) / static_cast<double>(smaller.bytes));
  };
  const double span = larger == caches.end() ? 1 : std::min(1.0, octaves_to(larger->bytes));
  return std::lerp(smaller.bytes_per_second, rate, std::min(1.0, octaves_to(bytes) / span));
}

double Machine::highest_rate(Size bytes) const {
  double rate = std::max(memory_bytes_per_second, memory_rate(bytes));
  for (const CacheLevel& cache : caches)
    if (bytes <= cache.bytes) rate = std::max(rate, cache.bytes_per_second);
  return rate;
}

double Machine::slowdown(Size side) const {
  const auto n = static_cast<double>(side);
  if (side_efficiency.empty()) return 1;
  const auto above = side_efficiency.lower_bound(side);
  const auto below = above == side_efficiency.begin() ? above : std::prev(above);
  if (above == side_efficiency.end() || above == below) return 1 / below->second;
  const auto from = static_cast<double>(below->first), to = static_cast<double>(above->first);
  const double part = std::log(n / from) / std::log(to / from);
  return 1 / std::lerp(below->second, above->second, part);
}

const Machine* Machine::find_threads(Size wanted) const {
  if (wanted == 0 || wanted == threads) return this;
  const auto found = std::ranges::find(others, wanted, &Machine::threads);
  return found == others.end() ? nullptr : &*found;
}

const Machine& Machine::of_threads(Size wanted) const {
  if (const Machine* found = find_threads(wanted)) return *found;
  std::vector<std::string> known;
  if (threads > 0) known.push_back(std::to_string(threads));
  for (const Machine& other : others) known.push_back(std::to_string(other.threads));
  throw ConfigError("distributed.threads", std::to_string(wanted),
                    "machine {} describes ranks of {} threads", name,
                    known.empty() ? "an unknown number of" : join(known));
}

double Machine::hidden(Operation operation) const {
  const auto found = overlaps.find(operation == Operation::all_gather ? "gathers"
                                   : operation == Operation::receive  ? "messages"
                                                                      : "gradients");
  return found == overlaps.end() ? overlap : found->second;
}

double call_seconds(const NetworkLevel& level, Operation operation, Size n, double bytes) {
  const auto seconds = [&](double rounds, double sent) {
    const bool is_eager = sent <= rounds * eager_bytes;
    return rounds * (level.latency_seconds + (is_eager ? 0 : level.rendezvous_seconds)) +
           sent / level.bytes_per_second;
  };
  const double few_bytes = seconds(fewest_rounds(operation, n), wire_factor(operation, n) * bytes);
  if (operation != Operation::all_reduce) return few_bytes;
  const double doublings = fewest_rounds(Operation::barrier, n);
  return std::min(few_bytes, seconds(doublings, doublings * bytes));
}

double product_rate(const Machine& machine, const PlanInput& input) {
  const Size ranks = input.mesh.num_ranks();
  if (ranks > machine.ranks())
    throw ConfigError("mesh", input.mesh.to_string(), "needs {} ranks; machine {} has {}",
                      with_thousands(ranks), machine.name, with_thousands(machine.ranks()));
  const std::string type = product_type(input);
  const auto rate = machine.flops_per_second.find(type);
  if (rate == machine.flops_per_second.end())
    throw ConfigError("machine.flops_per_second", machine.name, "has no {}", type);
  return rate->second;
}

std::optional<double> peak_rate(const Machine& machine, const PlanInput& input) {
  const auto peak = machine.peak_flops_per_second.find(product_type(input));
  return peak == machine.peak_flops_per_second.end() ? std::nullopt : std::optional(peak->second);
}

Cost cost_of_kernel(const Machine& machine, const Work& work, double flops_per_second,
                    double bytes_per_second) {
  double flops = work.flops;
  for (const auto& [side, of_side] : work.flops_of_side)
    flops += (machine.slowdown(side) - 1) * of_side;
  const double arithmetic = flops / flops_per_second + work.functions * machine.function_seconds;
  const double memory = work.bytes / bytes_per_second;
  const double launches = work.kernels * machine.kernel_seconds;
  const double seconds =
      launches + arithmetic + memory -
      (work.has_products ? machine.product_overlap : 1) * std::min(arithmetic, memory);
  return {.seconds = seconds, .launches = launches};
}

void check_device(const Machine& machine, Device device) {
  if (device != machine.device)
    throw Error(ExitCode::usage, "the plan is for a {}, but machine {} has the device {}",
                name_of(device), machine.name, name_of(machine.device));
}

CostOf cost_on(const Machine& machine, const Plan& plan) {
  check_device(machine, plan.input.traits.device);
  return MachineCost(machine, plan);
}

SimulatedStep simulate(const Plan& plan, const Machine& machine) {
  const SimulatedStep step =
      simulate(plan, cost_on(machine, plan), rank_kinds(plan), machine.software);
  if (!std::isfinite(step.step_seconds) || step.step_seconds <= 0)
    throw Error(ExitCode::usage, "machine {}: with its rates and latencies a step takes {} s",
                machine.name, step.step_seconds);
  return step;
}

}  // namespace tessera
