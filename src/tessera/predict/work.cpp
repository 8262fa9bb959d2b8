// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <string_view>

#include <tessera/base/pair_tree.hpp>
#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/optim/square_limbs.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/plan/orthogonalization.hpp>
#include <tessera/predict/kernel_work.hpp>
#include <tessera/predict/work.hpp>

namespace tessera {
namespace {

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

  void operator()(const Forward& forward) {
    layer(forward, forward.output, PassKind::forward, part_of(forward));
    read_before_writing(forward.inputs, {forward.output, forward.saved});
    const auto rest = sizes_.repeated_with.find(forward.layer);
    if (rest == sizes_.repeated_with.end() || !forward.recomputes || forward.ring_part > 0) return;
    for (const Action* action : rest->second)
      for (Work& work : work_of(*action, microbatch_, plan_, sizes_))
        works_.push_back(std::move(work));
  }

  /// If gradients of inputs and of parameters are computed separately, each counts as half of the
  /// backward pass.
  void operator()(const Backward& backward) {
    const LayerSpec& spec = sizes_.layers.at(backward.layer);
    const bool is_half = backward.gradients != Gradients::all && spec.uses_parameters() &&
                         spec.inputs[0] != LayerSpec::data;
    layer(backward, backward.output_gradient, PassKind::backward, is_half ? 0.5 : 1);
    read_before_writing({backward.output_gradient}, backward.input_gradients);
    if (backward.gradients != Gradients::of_inputs) tree_of_gradients(spec);
  }

  /// The loss reads prediction and targets, and writes terms or a gradient.
  void operator()(const PartialLoss& loss) { kernel_of_loss(loss.prediction); }
  /// In float32, kernels widen the logits; compute their logarithmic softmax, the gradient of the
  /// chosen class and that of the softmax; and round it.
  void operator()(const Loss& loss) {
    if (plan_.input.loss != LossKind::cross_entropy ||
        sizes_.software.loss_logits == LossLogits::computed)
      return kernel_of_loss(loss.prediction);
    const Size widened = size_of(DType::float32), own = size_of(plan_.input.compute_type);
    for (const Size of_logit : {own + widened, 2 * widened, widened, 3 * widened, widened + own})
      bytes(of_logit * elements_of(loss.prediction));
  }

  void operator()(const Accumulate& sum) {
    const DType from = slot(sum.from).type, to = slot(sum.to).type;
    bytes(elements_of(sum.from) * (size_of(from) + size_of(to) + (sum.adds ? size_of(to) : 0)));
  }
  void operator()(const Move& move) {
    if (!move.operation) kernel(vectors_of_copy(), elements_of(move.from), slot(move.from).type);
    call();
  }

  /// A message between stages is a started call on the sender, with the bytes, and its finish on
  /// the receiver; starting a receive and finishing a send take no time. The message of a ring is a
  /// started call of all its ranks: the one that they receive.
  void operator()(const Message& message) {
    const bool in_ring = message.peer < 0;
    if (in_ring ? message.sends : message.sends != (message.phase == Phase::start)) return;
    call(message.tag, message.peer);
    if (works_.empty()) return;
    works_.back().call->operation = Operation::receive;
    if (!in_ring && sizes_.software.stage_messages == BoundaryMessages::scattered) scatter(message);
  }

  void operator()(const Gather& move) {
    call(move.bucket);
    if (state().sharding.parameters) copy_share(move, plan_.input.compute_type);
  }
  void operator()(const Reduce& move) { call(move.bucket); }
  void operator()(const ReduceRows&) { call(); }
  /// The first and the last stage have the unit.
  void operator()(const ReduceTied&) {
    call();
    if (!works_.empty()) works_.back().stage = 0, works_.back().peer = std::ssize(plan_.stages) - 1;
  }
  void operator()(const ReduceScatter& move) {
    call(move.bucket);
    if (state().sharding.gradients) copy_share(move, plan_.input.state_type);
    // The share of a later microbatch is added to the sum of the earlier ones.
    if (move.phase != Phase::start && state().reduces_every_microbatch && microbatch_ > 0 &&
        !stage_.parameters.buckets[move.bucket].moves_share(move.ranks))
      kernel(3, state().buckets[move.bucket].share.count);
  }

  void operator()(const CountTargets&) {
    kernel(1, sizes_.calls.samples.own() * sizes_.layers.rbegin()->second.positions());
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

  void operator()(const MoveDirections&) { call(); }
  void operator()(const Orthogonalize& of) {
    const BucketPlan& bucket = stage_.parameters.buckets[of.bucket];
    Size own = 0;
    for (const Range& matrix : bucket.matrices)
      own += intersection(matrix, state().buckets[of.bucket].owned).count;
    const Size state_bytes = size_of(plan_.input.state_type);
    // Reads gradients and writes directions, or reads these and renews parameters.
    bytes(own * (of.phase == Phase::start
                     ? 2 * state_bytes + 2 * size_of(plan_.input.moments_type())
                     : 3 * state_bytes));
    if (of.phase == Phase::whole) works_.back() = steps_of(of.bucket);
    works_.back().updates = true;
  }

  /// The rank updates as many parameters as it has elements of one moment.
  void operator()(const Update&) {
    bytes(update_bytes(plan_.input, state()));
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
  bool is_host() const { return plan_.input.traits.device == Device::cpu; }
  /// Adds to the layer's kernel, unless it is a product, what a host's caches read because it is
  /// written: results that do not take the place of an operand. In a product this takes no time of
  /// its own, because many terms are added meanwhile.
  void read_before_writing(const std::vector<SlotId>& operands,
                           const std::vector<SlotId>& results) {
    Work& work = works_.front();
    if (!is_host() || work.has_products) return;
    for (const SlotId result : results)
      if (result != no_slot && std::ranges::none_of(operands, [&](SlotId operand) {
            return slot(operand).storage == slot(result).storage;
          }))
        work.bytes += static_cast<double>(elements_of(result) * size_of(slot(result).type));
  }
  /// Vectors that are read or written where one is copied.
  Size vectors_of_copy() const { return is_host() ? 3 : 2; }
  /// Adds to a call that does not work in place the copy of the rank's share.
  void copy_share(const BucketMove& move, DType type) {
    if (works_.empty() || move.phase == Phase::finish || !is_host() ||
        stage_.parameters.buckets[move.bucket].moves_share(move.ranks))
      return;
    works_.back().copied = static_cast<double>(
        vectors_of_copy() * state().buckets[move.bucket].share.count * size_of(type));
  }
  void kernel_of_loss(SlotId prediction) {
    const Size elements = elements_of(prediction);
    kernel(3, elements, plan_.input.compute_type);
    works_.back().functions = functions_of_loss(plan_.input.loss, static_cast<double>(elements),
                                                sizes_.layers.rbegin()->second.out());
  }

  /// Returns the part of a forward pass that the program of the prediction computes.
  double part_of(const Forward& forward) const {
    const LayerSpec& layer = sizes_.layers.at(forward.layer);
    if (!forward.recomputes ||
        sizes_.software.block_recomputation != BlockRecomputation::half_of_products)
      return 1;
    if (!layer.kind->expression.streamed.empty()) return 0;
    return layer_products(layer, 1).forward.empty() ? 1 : 0.5;
  }

  /// Adds the part `share` of the kernel of a layer, or of its part in a ring. A piece of a product
  /// has the rows of `result`.
  void layer(const Compute& compute, SlotId result, PassKind pass, double share) {
    const LayerSpec& whole = sizes_.layers.at(compute.layer);
    const bool is_part = compute.ring_part >= 0,
               is_piece = is_part && whole.kind->expression.streamed.empty();
    const double part =
        is_part && !is_piece ? 1 / static_cast<double>(plan_.input.mesh.size_of("context")) : 1;
    const AxisSet axes = sample_axes(plan_.input.mesh, plan_.placements[compute.layer]);
    Size samples = sizes_.calls.samples.in(microbatch_, axes);
    LayerSpec piece{};
    if (is_piece) {
      const Shape shape = local_shape(slot(result), samples, plan_.input.mesh, sizes_.calls.rank);
      piece = whole;
      piece.sizes.insert_or_assign('p', num_elements({shape.begin(), shape.end() - 1}));
      samples = 1;
    }
    const LayerSpec& layer = is_piece ? piece : whole;
    const AttentionScores kept = sizes_.software.attention;
    works_.push_back(layer_work(layer, samples, plan_.input, pass, share * part, kept));
    if (const auto softmax = softmax_work(layer, samples, plan_.input, pass, share * part, kept))
      works_.push_back(*softmax);
  }

  /// Scatters a message over the ranks of `model` if all of them hold its tensor: each sends its
  /// share, and the receivers gather them.
  void scatter(const Message& message) {
    const MeshShape& mesh = plan_.input.mesh;
    const Size ranks = mesh.size_of("model");
    const Slot& tensor = slot(message.tensor);
    if (ranks == 1 || !placement_along("model", tensor.placements, mesh).is_replicate()) return;
    works_.back().bytes /= static_cast<double>(ranks);
    if (message.sends) return;
    const Size all = elements_of(message.tensor) * size_of(tensor.type);
    works_.push_back({.bytes = static_cast<double>(all),
                      .call = ActionCall{mesh.axes_named({"model"}), Operation::all_gather, all,
                                         content_of(tensor)}});
  }

  /// Returns the products that orthogonalize the rank's matrices of a bucket.
  Work steps_of(Size bucket) const {
    Work work{.kernels = 0, .has_products = true};
    for (const Size p : plan_matrices(plan_, bucket, sizes_.calls.rank).matrices) {
      const Shape& shape = stage_.parameters.parameters[p].shape;
      for (const GemmShape& product : newton_schulz_products(shape[0], shape[1])) {
        work.kernels += static_cast<double>(product.times);
        work.flops += product.flops();
        work.flops_of_side[product.side()] += product.flops();
        work.bytes += static_cast<double>(product.elements() * size_of(plan_.input.state_type));
      }
    }
    return work;
  }

  /// Adds the kernels that join nodes of the tree of gradients, over the microbatches that are
  /// complete with this one.
  void tree_of_gradients(const LayerSpec& layer) {
    const PlanInput& input = plan_.input;
    const bool is_second = layer.tied_to >= 0 && input.sums_uses_apart();
    if (!input.sums_microbatches_in_tree() || !layer.uses_parameters()) return;
    const Size parameters = is_second ? layer.size("vi") : layer.num_parameters();
    Size joins = 0;
    for (const Range& grains :
         layer.experts() > 0 ? state().grains_of_experts : std::vector<Range>{state().grains})
      if (microbatch_ < grains.count)
        join_rows(grains.begin, {grains.begin + microbatch_, 1}, [&](Size, Size) { ++joins; });
    kernel(3 * joins, parameters);
  }

  /// Adds the action's call, if it has one and several ranks take part.
  void call(Size number = 0, Size peer = -1) {
    const auto call = call_of(action_, microbatch_, plan_, sizes_.calls);
    if (!call || plan_.input.mesh.group_size(call->ranks) == 1) return;
    works_.push_back({.bytes = call->is_issued ? static_cast<double>(call->bytes) : 0,
                      .call = call,
                      .number = number,
                      .stage = peer < 0 ? -1 : sizes_.calls.stage,
                      .peer = peer});
  }

  const Action& action_;
  Size microbatch_;
  const Plan& plan_;
  const StagePlan& stage_;
  const WorkSizes& sizes_;
  std::vector<Work> works_;
};

/// Returns WorkSizes::repeated_with of a stage: with the first layer of a block that the plan
/// recomputes, those that it does not, and their sums over ranks.
std::map<Size, std::vector<const Action*>> rest_of_blocks(const Plan& plan,
                                                          const StagePlan& stage) {
  const auto block = [&](Size l) { return block_of(plan.input.model.layers[l]); };
  std::set<Size> recomputed;
  std::map<std::string_view, Size> first;  // by block
  for (const ListedAction& listed : stage.actions)
    if (const auto* forward = listed.as<Forward>(); forward && forward->recomputes)
      recomputed.insert(forward->layer), first.try_emplace(block(forward->layer), forward->layer);
  std::map<Size, std::vector<const Action*>> rest;
  std::map<SlotId, Size> terms;  // of a sum over ranks, and the first layer of their block
  for (const ListedAction& listed : stage.actions) {
    if (listed.microbatch != 0) continue;
    const auto* forward = listed.as<Forward>();
    const auto* move = listed.as<Move>();
    if (forward && first.contains(block(forward->layer)) && !recomputed.contains(forward->layer))
      rest[terms[forward->output] = first.at(block(forward->layer))].push_back(&*listed.action);
    else if (move && move->operation && terms.contains(move->from))
      rest[terms.at(move->from)].push_back(&*listed.action);
  }
  return rest;
}

Size unique_elements(const Plan& plan, Size rank) {
  Size sum = 0;
  for (const Range& range : plan.unique_gradients(rank)) sum += range.count;
  return sum;
}

}  // namespace

/// Reads and writes parameters and moments, reads gradients.
Size update_bytes(const PlanInput& input, const StatePlan& state) {
  return (state.moments() - state.matrices) *
         (3 * size_of(input.state_type) + 2 * input.moments * size_of(input.moments_type()));
}

WorkSizes work_sizes(const Plan& plan, Size rank, const Software& software) {
  const PlanInput& input = plan.input;
  WorkSizes sizes{call_sizes(plan, rank), {}, unique_elements(plan, rank), software};
  for (const Range& chunk : plan.stage(rank).chunks)
    for (Size l = chunk.begin; l < chunk.end(); ++l)
      sizes.layers.emplace(l, local_layer(input, input.model.layers[l], plan.placements[l], rank,
                                          input.mesh.all_axes()));
  if (software.block_recomputation == BlockRecomputation::whole &&
      input.activation_checkpointing.what == Recomputed::block)
    sizes.repeated_with = rest_of_blocks(plan, plan.stage(rank));
  return sizes;
}

std::vector<Work> work_of(const Action& action, Size microbatch, const Plan& plan,
                          const WorkSizes& sizes) {
  return WorkLister(action, microbatch, plan, sizes).list();
}

}  // namespace tessera
