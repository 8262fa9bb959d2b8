// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/base/pair_tree.hpp>
#include <tessera/nn/layers/layer_row.hpp>
#include <tessera/optim/square_limbs.hpp>
#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/predict/work.hpp>

namespace tessera {
namespace {

/// Makes the result of work_of().
class WorkLister {
 public:
  WorkLister(const Action& action, const Plan& plan, const WorkSizes& sizes)
      : action_(action), plan_(plan), stage_(plan.stages[sizes.calls.stage]), sizes_(sizes) {}

  std::vector<Work> list() {
    const Operands& operands = action_.operands;
    switch (action_.operation) {
      case StepOperation::forward:
      case StepOperation::backward:
        layer();
        break;
      case StepOperation::loss_terms:
      case StepOperation::loss:
        // Reads prediction and targets, writes terms or a gradient.
        kernel(3, elements_of(operands.inputs[0]), plan_.input.compute_type);
        break;
      case StepOperation::count_targets:
        kernel(1, sizes_.calls.samples * sizes_.layers.back().positions);
        call();
        break;
      case StepOperation::accumulate:
        accumulate();
        break;
      case StepOperation::redistribute:
        if (!action_.call) kernel(2, elements_of(operands.from), slot(operands.from).type);
        call();
        break;
      case StepOperation::send:
      case StepOperation::receive:
        message();
        break;
      case StepOperation::gather:
      case StepOperation::reduce:
      case StepOperation::reduce_rows:
        call();
        break;
      case StepOperation::reduce_scatter:
        call();
        // The share of a later microbatch is added to the sum of the earlier ones.
        if (action_.phase != Phase::start && state().reduces_every_microbatch &&
            action_.microbatch > 0)
          kernel(3, state().buckets[action_.index].share.count);
        break;
      case StepOperation::check_finite:
        kernel(1, state().moments());
        call();
        break;
      case StepOperation::find_largest:
        kernel(1, sizes_.unique_gradients);
        call();
        break;
      case StepOperation::clip:
        if (plan_.input.clips_by_value) kernel(2, state().gradients());
        if (plan_.input.clips_by_norm)
          kernel(plan_.input.numerics.reproducible ? square_limbs : 1, sizes_.unique_gradients);
        call();
        break;
      case StepOperation::update:
        // The rank updates as many parameters as it has elements of one moment.
        bytes(update_bytes(plan_.input, state().moments()));
        if (state().has_copies)
          bytes(state().moments() *
                (size_of(plan_.input.state_type) + size_of(plan_.input.compute_type)));
        break;
    }
    return std::move(works_);
  }

 private:
  const StatePlan& state() const { return sizes_.calls.state; }
  const Slot& slot(SlotId id) const { return stage_.slots[id]; }
  Size elements_of(SlotId id) const {
    return own_elements(slot(id), sizes_.calls, action_.microbatch);
  }

  /// Adds a kernel that reads and writes `n` bytes.
  void bytes(Size n) {
    works_.push_back({.operation = action_.operation, .bytes = static_cast<double>(n)});
  }
  /// Adds a kernel that reads or writes `vectors` vectors of `elements` elements each.
  void kernel(Size vectors, Size elements, DType type) {
    bytes(vectors * elements * size_of(type));
  }
  void kernel(Size vectors, Size elements) { kernel(vectors, elements, plan_.input.state_type); }

  /// Adds the kernel of an accumulate action.
  void accumulate() {
    const Operands& operands = action_.operands;
    const DType from = slot(operands.from).type, to = slot(operands.to).type;
    bytes(elements_of(operands.from) *
          (size_of(from) + size_of(to) + (action_.adds ? size_of(to) : 0)));
  }

  /// Adds the kernel of a layer. If gradients of inputs and of parameters are computed separately,
  /// each counts as half of the backward pass.
  void layer() {
    const LayerSpec& layer = sizes_.layers[action_.index];
    const Size samples = sizes_.calls.counts_of(action_.microbatch).of(layer.experts);
    const bool is_half = action_.gradients != Gradients::all && !layer.parameters.empty() &&
                         layer.inputs[0] != LayerSpec::data;
    const double part =
        action_.part < 0 ? 1 : 1 / static_cast<double>(sizes_.calls.along.context_ranks);
    works_.push_back(
        layer_work(layer, samples, plan_.input, action_.operation, (is_half ? 0.5 : 1) * part));
    if (action_.is(StepOperation::backward) && action_.gradients != Gradients::of_inputs)
      tree_of_gradients(layer);
  }

  /// Adds the kernels that join nodes of the tree of gradients, over the microbatches that are
  /// complete with this one.
  void tree_of_gradients(const LayerSpec& layer) {
    const PlanInput& input = plan_.input;
    if (!input.sums_microbatches_in_tree() || layer.num_parameters() == 0) return;
    Size joins = 0;
    join_complete_nodes({action_.microbatch, 1}, [&](Size, Size) { ++joins; });
    kernel(3 * joins, layer.num_parameters());
  }

  /// Adds a message: as a started call on the sender, with the bytes, and as its finish on the
  /// receiver. Starting a receive and finishing a send take no time.
  void message() {
    if (action_.call->ranks == RankSet::context) return ring_message();
    const bool sends = action_.is(StepOperation::send);
    if (action_.phase != (sends ? Phase::start : Phase::finish)) return;
    Work work{.operation = action_.operation, .call = action_.call, .phase = action_.phase};
    work.call->operation = Operation::receive;
    work.number = message_number(action_, plan_.input);
    work.peer = action_.peer;
    if (sends) work.bytes = payload();
    works_.push_back(work);
  }

  /// Adds the message of a ring as a started call of all its ranks: the one that they receive.
  void ring_message() {
    if (action_.is(StepOperation::send)) return;
    Work work{.operation = action_.operation,
              .call = action_.call,
              .phase = action_.phase,
              .number = action_.tag};
    if (action_.phase == Phase::start) work.bytes = payload();
    works_.push_back(work);
  }

  /// Adds the action's call, if it has one and several ranks take part.
  void call() {
    if (!action_.call || !has_many(action_.call->ranks)) return;
    Work work{.operation = action_.operation,
              .call = action_.call,
              .phase = action_.phase,
              .number = action_.index};
    work.bytes = payload();
    works_.push_back(work);
  }

  double payload() const {
    return static_cast<double>(
        payload_bytes(action_, action_.microbatch, plan_, sizes_.calls).value_or(0));
  }

  bool has_many(RankSet ranks) const {
    return plan_.input.mesh.group_size(axes_of(ranks, plan_.input)) > 1;
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

Size message_number(const Action& action, const PlanInput& input) {
  return action.tag * input.microbatches + action.microbatch;
}

Work layer_work(const LayerSpec& layer, Size samples, const PlanInput& input,
                StepOperation operation, double share) {
  const bool forwards = operation == StepOperation::forward;
  const LayerProducts products = row_of(layer).products(layer, samples);
  Work work{.operation = operation, .has_products = !products.forward.empty()};
  if (samples == 0) return work;
  const Size element_bytes = size_of(input.compute_type);
  double calls = 0;
  std::vector<GemmShape> all = forwards ? products.forward : products.backward;
  if (!forwards) all.insert(all.end(), products.repeated.begin(), products.repeated.end());
  for (const GemmShape& product : all) {
    calls += share * static_cast<double>(product.launches);
    if (product.times > 1)  // blocks of wider matrices; kernels have no gaps
      work.block_bytes +=
          share *
          static_cast<double>(element_bytes * (product.elements() - layer.num_parameters()));
    work.flops += share * product.flops();
    if (product.flops() > 0)
      work.flops_by_side += share * product.flops() /
                            static_cast<double>(std::min({product.m, product.n, product.k}));
  }
  work.kernels = std::max(1.0, calls);
  const PassCount functions = row_of(layer).functions(layer, samples);
  work.functions = share * (forwards ? functions.forward : functions.backward);
  const PassCount operands = count_operands(layer, samples);
  work.bytes = share * (forwards ? operands.forward : operands.backward) *
               static_cast<double>(element_bytes);
  return work;
}

/// Reads and writes parameters and moments, reads gradients.
Size update_bytes(const PlanInput& input, Size elements) {
  return (3 + 2 * input.moments) * elements * size_of(input.state_type);
}

WorkSizes work_sizes(const Plan& plan, Size rank) {
  return {call_sizes(plan, rank), plan.local_layers(rank), unique_elements(plan, rank)};
}

std::vector<Work> work_of(const Action& action, const Plan& plan, const WorkSizes& sizes) {
  return WorkLister(action, plan, sizes).list();
}

/// Work depends on more than memory and calls: on the extents of layers, if `model` does not divide
/// widths evenly, and on the elements in the norm of the gradient.
EqualWork ranks_with_equal_work(const Plan& plan) {
  const bool has_norm = plan.input.clips_by_norm;
  EqualWork equal{equal_ranks(plan, has_norm), {}};
  equal.first.resize(static_cast<std::size_t>(equal.boxes.size()));
  MemoryAndCalls memory_and_calls(plan);
  ModelClasses classes(plan);
  for (const auto& group :
       group_boxes<std::vector<Size>>(equal.boxes, equal.boxes.all(), [&](Size rank) {
         std::vector<Size> key = memory_and_calls(rank);
         key.push_back(classes(rank));
         key.push_back(has_norm ? unique_elements(plan, rank) : 0);
         return key;
       }))
    for (const Size box : group.boxes)
      equal.first[static_cast<std::size_t>(box)] = equal.boxes.first_rank(group.boxes.front());
  return equal;
}

}  // namespace tessera
