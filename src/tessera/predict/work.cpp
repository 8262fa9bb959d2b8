// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <fmt/format.h>

#include <tessera/nn/layers/layer_row.hpp>
#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/predict/work.hpp>

namespace tessera {
namespace {

using Phase = Work::Phase;

class WorkLister {
 public:
  WorkLister(const Action& action, const Plan& plan, const WorkSizes& sizes)
      : action_(action), plan_(plan), stage_(plan.stages[sizes.calls.stage]), sizes_(sizes) {}

  std::vector<Work> list() {
    switch (action_.kind) {
      case ActionKind::forward:
      case ActionKind::backward:
      case ActionKind::backward_inputs:
      case ActionKind::backward_weights:
        layer();
        break;
      case ActionKind::start_send:
        message(Phase::started);
        break;
      case ActionKind::finish_receive:
        message(Phase::finishes);
        break;
      case ActionKind::start_receive:  // what they cost is part of the message
      case ActionKind::finish_send:
        break;
      case ActionKind::loss_terms:
      case ActionKind::loss:
        kernel(WorkKind::loss, elements_of(action_.reads[0]), compute_type());
        break;
      case ActionKind::accumulate:
        accumulate();
        break;
      case ActionKind::redistribute:
        redistribute();
        break;
      case ActionKind::gather:
        call(WorkKind::all_gather, Phase::whole, compute_type());
        break;
      case ActionKind::start_gather:
        call(WorkKind::all_gather, Phase::started, compute_type());
        break;
      case ActionKind::finish_gather:
        finish(WorkKind::all_gather, RankSet::shard, Operation::all_gather);
        break;
      case ActionKind::reduce_scatter:
        call(WorkKind::reduce_scatter, Phase::whole);
        add_incoming();
        break;
      case ActionKind::start_reduce_scatter:
        call(WorkKind::reduce_scatter, Phase::started);
        break;
      case ActionKind::finish_reduce_scatter:
        finish(WorkKind::reduce_scatter, RankSet::shard, Operation::reduce_scatter);
        add_incoming();
        break;
      case ActionKind::reduce:
      case ActionKind::reduce_rows:
        call(WorkKind::all_reduce, Phase::whole);
        break;
      case ActionKind::start_reduce:
        call(WorkKind::all_reduce, Phase::started);
        break;
      case ActionKind::finish_reduce:
        finish(WorkKind::all_reduce, RankSet::replica, Operation::all_reduce);
        break;
      case ActionKind::check_finite:
        kernel(WorkKind::find_not_finite, state().moments());
        call(WorkKind::all_reduce, Phase::whole, DType::float64);
        break;
      case ActionKind::clip:
        if (plan_.input.clips_by_value) kernel(WorkKind::clip_by_value, state().gradients());
        if (!plan_.input.clips_by_norm) break;
        kernel(WorkKind::sum_of_squares, sizes_.unique_gradients);
        call(WorkKind::all_reduce, Phase::whole, DType::float64);
        break;
      case ActionKind::update:
        kernel(WorkKind::update, state().moments());
        if (state().has_copies)
          conversion(state().moments(), plan_.input.state_type, compute_type());
        break;
    }
    return std::move(works_);
  }

 private:
  DType compute_type() const { return plan_.input.compute_type; }
  const StatePlan& state() const { return sizes_.calls.state; }
  const Slot& slot(SlotId id) const { return stage_.slots[id]; }
  Size elements_of(SlotId id) const {
    return own_elements(slot(id), plan_, sizes_.calls, action_.microbatch);
  }

  void kernel(WorkKind kind, Size elements, DType type) {
    works_.push_back({kind, std::string(name_of(type)), elements});
    works_.back().bytes = static_cast<double>(elements * size_of(type) * vectors_of(kind));
  }
  /// How many vectors of its elements a kernel reads or writes.
  Size vectors_of(WorkKind kind) const {
    switch (kind) {
      case WorkKind::accumulate:
      case WorkKind::loss:
        return 3;
      case WorkKind::copy:
      case WorkKind::clip_by_value:
        return 2;
      case WorkKind::update:  // parameters and moments are read and written, gradients read
        return 3 + 2 * plan_.input.moments;
      default:
        return 1;
    }
  }
  void kernel(WorkKind kind, Size elements) { kernel(kind, elements, plan_.input.state_type); }

  void conversion(Size elements, DType from, DType to) {
    works_.push_back(
        {WorkKind::copy, fmt::format("{} to {}", name_of(from), name_of(to)), elements});
    works_.back().bytes = static_cast<double>(elements * (size_of(from) + size_of(to)));
  }

  /// Of one tensor to another, or a conversion.
  void accumulate() {
    const Size elements = elements_of(action_.reads[0]);
    const DType from = slot(action_.reads[0]).type, to = slot(action_.writes[0]).type;
    if (from != to) return conversion(elements, from, to);
    kernel(action_.adds ? WorkKind::accumulate : WorkKind::copy, elements, from);
  }

  void layer() {
    const LayerSpec& layer = sizes_.layers[action_.index];
    const bool forwards = action_.kind == ActionKind::forward;
    const LayerProducts products = row_of(layer).products(layer, 1);
    std::string shape = fmt::format("{} {}x{}", row_of(layer).name, layer.in, layer.out);
    const bool mixes = row_of(layer).mixes_positions;
    if (mixes) shape += fmt::format(" of {} positions", layer.in_positions);
    if (layer.activation != Activation::identity)
      shape += fmt::format(" {}", name_of(layer.activation));
    if (layer.parameters.empty()) shape += " without parameters";
    for (std::size_t i = 0; !forwards && i < action_.writes.size(); ++i)
      if (action_.writes[i] == no_slot) shape += fmt::format(" without gradient {}", i);
    const auto& results = action_.writes;
    if (action_.kind == ActionKind::backward_inputs) shape += " of inputs";
    if (!results.empty() && stage_.in_one_place(action_.reads[0], results[0])) shape += " in place";
    if (action_.adds) shape += " adding";
    if (!results.empty() && results[0] != no_slot && slot(results[0]).type != compute_type())
      shape += " in sums";
    shape += fmt::format(" {}", name_of(compute_type()));
    if (plan_.input.precision != MatmulPrecision::strict && !products.forward.empty())
      shape += fmt::format(" {}", name_of(plan_.input.precision));
    works_.push_back({forwards ? WorkKind::forward : WorkKind::backward, std::move(shape),
                      sizes_.calls.rows(action_.microbatch) * (mixes ? 1 : layer.positions),
                      !products.forward.empty()});
    count(layer);
  }

  /// FLOPs and bytes of the layer's work. Where they come apart, gradients of inputs and of
  /// parameters are half of it each.
  void count(const LayerSpec& layer) {
    const Size samples = sizes_.calls.rows(action_.microbatch);
    const PassCount flops = count_flops({layer}, samples),
                    operands = count_operands(layer, samples);
    const bool forwards = action_.kind == ActionKind::forward;
    const bool is_half = !forwards && action_.kind != ActionKind::backward &&
                         !layer.parameters.empty() && layer.inputs[0] != LayerSpec::data;
    const double share = is_half ? 0.5 : 1;
    works_.back().flops = share * (forwards ? flops.forward : flops.backward);
    works_.back().bytes = share * (forwards ? operands.forward : operands.backward) *
                          static_cast<double>(size_of(compute_type()));
  }

  void message(Phase phase) {
    const Slot& of = slot(action_.index);
    const Size bytes = elements_of(action_.index) * size_of(of.type);
    works_.push_back({WorkKind::message, std::string(name_of(of.type)),
                      phase == Phase::started ? bytes : 0, false, RankSet::pipeline,
                      Operation::receive, phase,
                      action_.tag * plan_.input.microbatches + action_.microbatch, action_.peer});
    works_.back().bytes = static_cast<double>(works_.back().size);
  }

  /// A collective over `model`, or work of this rank alone.
  void redistribute() {
    const Slot &from = slot(action_.reads[0]), &to = slot(action_.writes[0]);
    const auto placement = [](const Slot& one) { return to_string(one.along_model); };
    Work work{WorkKind::redistribute,
              fmt::format("{} to {} {} columns {}", placement(from), placement(to), from.shape[1],
                          name_of(from.type)),
              sizes_.calls.rows(action_.microbatch) * from.positions};
    if (const auto operation = operation_of(transition(from.along_model, to.along_model))) {
      work.ranks = RankSet::model;
      work.operation = *operation;
    }
    if (const auto planned = call_of(action_, plan_, sizes_.calls))
      work.bytes = static_cast<double>(planned->payload_bytes);
    else
      work.bytes = 2.0 * static_cast<double>(elements_of(action_.reads[0]) * size_of(from.type));
    works_.push_back(std::move(work));
  }

  /// The action's planned call; of no size where this rank's group has nothing to exchange.
  void call(WorkKind kind, Phase phase, DType type) {
    const PlannedCall planned =
        call_of(action_, plan_, sizes_.calls)
            .value_or(PlannedCall{RankSet::model, Operation::all_reduce, 0, ""});
    if (!has_many(planned.ranks)) return;
    std::string shape(name_of(type));
    if (kind == WorkKind::reduce_scatter && !state().sharding.gradients) shape += " in place";
    works_.push_back({kind, std::move(shape), planned.payload_bytes, false, planned.ranks,
                      planned.operation, phase, action_.index});
    works_.back().bytes = static_cast<double>(planned.payload_bytes);
  }
  void call(WorkKind kind, Phase phase) { call(kind, phase, plan_.input.state_type); }

  void finish(WorkKind kind, RankSet ranks, Operation operation) {
    if (has_many(ranks))
      works_.push_back({kind, "", 0, false, ranks, operation, Phase::finishes, action_.index});
  }

  bool has_many(RankSet ranks) const {
    return plan_.input.mesh.group_size(axes_of(ranks, plan_.input)) > 1;
  }

  void add_incoming() {
    if (state().reduces_every_microbatch && action_.microbatch > 0)
      kernel(WorkKind::accumulate, state().buckets[action_.index].share.count);
  }

  const Action& action_;
  const Plan& plan_;
  const StagePlan& stage_;
  const WorkSizes& sizes_;
  std::vector<Work> works_;
};

Size unique_elements(const Plan& plan, Size rank) {
  Size sum = 0;
  for (const Range& range : plan.unique_gradients(rank)) sum += range.count;
  return sum;
}

}  // namespace

std::string Work::name() const {
  return fmt::format("{} {}{}", name_of(kind), shape, phase == Phase::started ? " started" : "");
}

WorkSizes work_sizes(const Plan& plan, Size rank) {
  return {call_sizes(plan, rank), plan.local_layers(rank), unique_elements(plan, rank)};
}

std::vector<Work> work_of(const Action& action, const Plan& plan, const WorkSizes& sizes) {
  return WorkLister(action, plan, sizes).list();
}

/// Ranks that are alike in memory and traffic need not be alike in products, where `model` does not
/// divide widths evenly, nor in what they add to the norm.
EqualWork ranks_with_equal_work(const Plan& plan) {
  const bool has_norm = plan.input.clips_by_norm;
  EqualWork equal{equal_ranks(plan, has_norm), {}};
  equal.first.resize(static_cast<std::size_t>(equal.boxes.number()));
  MemoryAndCalls memory_and_calls(plan);
  ModelParts parts(plan);
  for (const auto& group :
       group_boxes<std::vector<Size>>(equal.boxes, equal.boxes.all(), [&](Size rank) {
         std::vector<Size> key = memory_and_calls(rank);
         key.push_back(parts(rank));
         key.push_back(has_norm ? unique_elements(plan, rank) : 0);
         return key;
       }))
    for (const Size box : group.boxes)
      equal.first[static_cast<std::size_t>(box)] = equal.boxes.first_rank(group.boxes.front());
  return equal;
}

}  // namespace tessera
