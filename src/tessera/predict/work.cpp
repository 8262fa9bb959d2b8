// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/base/pair_tree.hpp>
#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/optim/square_limbs.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/predict/work.hpp>

namespace tessera {
namespace {

/// Time of a sum over a row or of a search in it beside its elements, in exponential functions: its
/// loop ends, and the lanes of a vector are joined. Measured; shuffles in a warp take about as
/// long.
constexpr double functions_per_sum = 12;

/// Makes the result of work_of(): visits an action and lists its kernels and calls.
class WorkLister {
 public:
  WorkLister(const Action& action, Size microbatch, const Plan& plan, const WorkSizes& sizes)
      : action_(action),
        microbatch_(microbatch),
        plan_(plan),
        stage_(plan.stages[sizes.calls.stage]),
        sizes_(sizes) {}

  std::vector<Work> list() {
    std::visit(*this, action_);
    return std::move(works_);
  }

  void operator()(const Forward& forward) { layer(forward, PassKind::forward, 1); }

  /// If gradients of inputs and of parameters are computed separately, each counts as half of the
  /// backward pass.
  void operator()(const Backward& backward) {
    const LayerSpec& spec = sizes_.layers[backward.layer];
    const bool is_half = backward.gradients != Gradients::all && spec.uses_parameters() &&
                         spec.inputs[0] != LayerSpec::data;
    layer(backward, PassKind::backward, is_half ? 0.5 : 1);
    if (backward.gradients != Gradients::of_inputs) tree_of_gradients(spec);
  }

  /// The loss reads prediction and targets, and writes terms or a gradient.
  void operator()(const PartialLoss& loss) { kernel_of_loss(loss.prediction); }
  void operator()(const Loss& loss) { kernel_of_loss(loss.prediction); }

  void operator()(const Accumulate& sum) {
    const DType from = slot(sum.from).type, to = slot(sum.to).type;
    bytes(elements_of(sum.from) * (size_of(from) + size_of(to) + (sum.adds ? size_of(to) : 0)));
  }
  void operator()(const Move& move) {
    if (!move.operation) kernel(2, elements_of(move.from), slot(move.from).type);
    call();
  }

  /// A message between stages is a started call on the sender, with the bytes, and its finish on
  /// the receiver; starting a receive and finishing a send take no time. The message of a ring is a
  /// started call of all its ranks: the one that they receive.
  void operator()(const Message& message) {
    const bool in_ring = message.peer < 0;
    if (in_ring ? message.sends : message.sends != (message.phase == Phase::start)) return;
    const Size number = message.tag * plan_.input.microbatches + microbatch_;
    call(in_ring ? message.tag : number, message.peer);
    if (!works_.empty()) works_.back().call->operation = Operation::receive;
  }

  void operator()(const Gather& move) { call(move.bucket); }
  void operator()(const Reduce& move) { call(move.bucket); }
  void operator()(const ReduceRows&) { call(); }
  void operator()(const ReduceTied&) { call(); }
  void operator()(const ReduceScatter& move) {
    call(move.bucket);
    // The share of a later microbatch is added to the sum of the earlier ones.
    if (move.phase != Phase::start && state().reduces_every_microbatch && microbatch_ > 0)
      kernel(3, state().buckets[move.bucket].share.count);
  }

  void operator()(const CountTargets&) {
    kernel(1, sizes_.calls.samples.own() * sizes_.layers.back().positions());
    call();
  }
  void operator()(const CheckFinite&) {
    kernel(1, state().moments());
    call();
  }
  void operator()(const FindLargest&) {
    kernel(1, sizes_.unique_gradients);
    call();
  }
  void operator()(const Clip&) {
    if (plan_.input.clips_by_value) kernel(2, state().gradients());
    if (plan_.input.clips_by_norm)
      kernel(plan_.input.numerics.reproducible ? square_limbs : 1, sizes_.unique_gradients);
    call();
  }

  /// The rank updates as many parameters as it has elements of one moment.
  void operator()(const Update&) {
    bytes(update_bytes(plan_.input, state().moments()));
    if (state().has_copies)
      bytes(state().moments() *
            (size_of(plan_.input.state_type) + size_of(plan_.input.compute_type)));
    for (Work& work : works_) work.updates = true;
  }

 private:
  const StatePlan& state() const { return sizes_.calls.state; }
  const Slot& slot(SlotId id) const { return stage_.slots[id]; }
  Size elements_of(SlotId id) const {
    return own_elements(slot(id), plan_, sizes_.calls, microbatch_);
  }

  /// Adds a kernel that reads and writes `n` bytes.
  void bytes(Size n) { works_.push_back({.bytes = static_cast<double>(n)}); }
  /// Adds a kernel that reads or writes `vectors` vectors of `elements` elements each.
  void kernel(Size vectors, Size elements, DType type) {
    bytes(vectors * elements * size_of(type));
  }
  void kernel(Size vectors, Size elements) { kernel(vectors, elements, plan_.input.state_type); }
  void kernel_of_loss(SlotId prediction) {
    kernel(3, elements_of(prediction), plan_.input.compute_type);
  }

  /// Adds the part `share` of the kernel of a layer, or of its part in a ring.
  void layer(const Compute& compute, PassKind pass, double share) {
    const LayerSpec& layer = sizes_.layers[compute.layer];
    const double part =
        compute.ring_part < 0 ? 1 : 1 / static_cast<double>(plan_.input.mesh.size_of("context"));
    const AxisSet axes = sample_axes(plan_.input.mesh, plan_.placements[compute.layer]);
    works_.push_back(layer_work(layer, sizes_.calls.samples.in(microbatch_, axes), plan_.input,
                                pass, share * part));
  }

  /// Adds the kernels that join nodes of the tree of gradients, over the microbatches that are
  /// complete with this one.
  void tree_of_gradients(const LayerSpec& layer) {
    const PlanInput& input = plan_.input;
    if (!input.sums_microbatches_in_tree() || layer.num_parameters() == 0) return;
    Size joins = 0;
    join_complete_nodes({microbatch_, 1}, [&](Size, Size) { ++joins; });
    kernel(3 * joins, layer.num_parameters());
  }

  /// Adds the action's call, if it has one and several ranks take part.
  void call(Size number = 0, Size peer = -1) {
    const auto call = call_of(action_, microbatch_, plan_, sizes_.calls);
    if (!call || plan_.input.mesh.group_size(call->ranks) == 1) return;
    works_.push_back({.bytes = call->is_issued ? static_cast<double>(call->bytes) : 0,
                      .call = call,
                      .number = number,
                      .peer = peer});
  }

  const Action& action_;
  Size microbatch_;
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

Work layer_work(const LayerSpec& layer, Size samples, const PlanInput& input, PassKind pass,
                double share) {
  const bool forwards = pass == PassKind::forward;
  const LayerProducts products = layer_products(layer, samples);
  Work work{.pass = pass, .has_products = !products.forward.empty()};
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
  const auto of_pass = [&](PassCount count) { return forwards ? count.forward : count.backward; };
  const LayerFunctions functions = layer.kind->functions(layer);
  const double of_sample =
      of_pass(functions.exponentials) + functions_per_sum * of_pass(functions.row_sums);
  work.functions = share * (static_cast<double>(samples) * of_sample);
  work.bytes = share * of_pass(count_operands(layer, samples)) * static_cast<double>(element_bytes);
  return work;
}

/// Reads and writes parameters and moments, reads gradients.
Size update_bytes(const PlanInput& input, Size elements) {
  return (3 + 2 * input.moments) * elements * size_of(input.state_type);
}

WorkSizes work_sizes(const Plan& plan, Size rank) {
  return {call_sizes(plan, rank), plan.local_layers(rank), unique_elements(plan, rank)};
}

std::vector<Work> work_of(const Action& action, Size microbatch, const Plan& plan,
                          const WorkSizes& sizes) {
  return WorkLister(action, microbatch, plan, sizes).list();
}

}  // namespace tessera
