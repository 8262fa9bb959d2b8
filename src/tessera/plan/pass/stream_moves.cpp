// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/plan/pass/passes.hpp>

namespace tessera::detail {
namespace {

class Streaming {
 public:
  Streaming(const PlanInput& input, const std::vector<LayerPlacements>& placed,
            PassTensors& tensors)
      : layers_(input.model.layers),
        placed_(placed),
        tensors_(tensors),
        axis_(*input.mesh.find("model")),
        ranks_(input.mesh.axes()[axis_].size),
        joins_(!sharding_on(input.strategy, input.mesh).gradients ||
               input.fsdp_unit == FsdpUnit::block) {}

  void run(PassTensors::List list) {
    std::vector<Action> all = std::exchange(tensors_.chunk().*list, {});
    tensors_.emit_to(list);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (const Move* move = move_at(all, i, Operation::all_gather))
        rows_of_[move->to] = move->from;
    bring_together(all);
    std::map<std::size_t, const Move*> gathers;  // by position of the product that reads the rows
    std::set<std::size_t> scatters;              // positions
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (scatters.contains(i)) continue;
      if (const Move* move = move_at(all, i, Operation::all_gather)) {
        const std::size_t reader = next_use(all, i, move->to);
        if (is_product(all, reader) && gathers.emplace(reader, move).second) continue;
      } else if (is_product(all, i)) {
        const Move* const gather = gathers.contains(i) ? gathers.at(i) : nullptr;
        std::size_t last = i;
        while (!gathers.contains(last + 1) && share_ring(all, i, last + 1)) ++last;
        const std::size_t next = next_use(all, last, result_of(all[i]));
        const Move* scatter = move_at(all, next, Operation::reduce_scatter);
        const auto* backward = std::get_if<Backward>(&all[i]);
        if (gather && (!backward || backward->inputs[0] != gather->to)) scatter = nullptr;
        if (scatter) scatters.insert(next);
        if (gather || scatter) {
          stream({all.begin() + i, all.begin() + last + 1}, gather, scatter);
          i = last;
          continue;
        }
      }
      tensors_.emit(all[i]);
    }
  }

 private:
  /// Returns the move at a position if it gathers rows along `model`, or scatters sums over its
  /// ranks to rows; else nullptr.
  const Move* move_at(const std::vector<Action>& all, std::size_t i, Operation operation) const {
    const auto* move = i < all.size() ? std::get_if<Move>(&all[i]) : nullptr;
    if (move == nullptr || move->axis != axis_ || move->operation != operation) return nullptr;
    const SlotId rows = operation == Operation::all_gather ? move->from : move->to;
    return tensors_.slot(rows).placements[axis_].is_shard(0) ? move : nullptr;
  }

  /// Returns the position of the first action behind action `i` that uses a tensor.
  static std::size_t next_use(const std::vector<Action>& all, std::size_t i, SlotId tensor) {
    bool is_used = false;
    while (!is_used && ++i < all.size())
      for_each_slot(all[i], [&](SlotId id) { is_used = is_used || id == tensor; });
    return i;
  }

  /// Returns true if an action computes a product of the rows of tensors in the frame, and no two
  /// ranks sum the same gradients of its parameters.
  bool is_product(const std::vector<Action>& all, std::size_t i) const {
    const Compute* const compute = i < all.size() ? compute_of(all[i]) : nullptr;
    if (compute == nullptr) return false;
    const LayerSpec& layer = layers_[compute->layer];
    const Layout& along = placed_[compute->layer].along("model");
    bool is_product = is_kernel(layer, 0) && !layer.kind->reads_batch &&
                      layer.kind->expression.inputs[0].indices.starts_with("sp,");
    for (std::size_t p = 0; p < along.parameters.size(); ++p)
      is_product = is_product &&
                   (along.parameters[p].is_shard() || along.parameter_gradients[p].is_partial());
    for_each_slot(all[i], [&](SlotId id) {
      is_product = is_product && tensors_.slot(id).role != TensorRole::batch;
    });
    return is_product;
  }

  /// Returns the rows that were gathered to a tensor, else the tensor.
  SlotId rows_of(SlotId tensor) const {
    return rows_of_.contains(tensor) ? rows_of_.at(tensor) : tensor;
  }

  /// Returns true if a product can share its ring with a later action: both are products of the
  /// same gathered rows, or add to the same gradient of their input.
  bool share_ring(const std::vector<Action>& all, std::size_t i, std::size_t later) const {
    if (!joins_ || later >= all.size() || all[i].index() != all[later].index()) return false;
    const SlotId x = compute_of(all[i])->inputs[0];
    if (rows_of(x) != rows_of(compute_of(all[later])->inputs[0]) || !is_product(all, later))
      return false;
    const auto* backward = std::get_if<Backward>(&all[later]);
    if (backward == nullptr) return rows_of(x) != x;
    const SlotId dx = result_of(all[i]);
    return dx == result_of(all[later]) && (dx == no_slot ? rows_of(x) != x : backward->adds);
  }

  /// Puts such products beside each other: forward behind the first one, backward before the last.
  /// Both then read the tensor that is gathered first.
  void bring_together(std::vector<Action>& all) const {
    for (std::size_t i = all.size(); i-- > 0;) {
      if (!is_product(all, i)) continue;
      const bool is_forward = std::holds_alternative<Forward>(all[i]);
      const std::size_t end = is_forward ? all.size() : next_use(all, i, result_of(all[i])) + 1;
      std::size_t later = i + 1;
      while (later < end && !share_ring(all, i, later)) ++later;
      if (later == end) continue;
      const auto from = all.begin() + i, to = all.begin() + later;
      const SlotId x = compute_of(*from)->inputs[0],
                   dropped = std::exchange(compute_of(*to)->inputs[0], x);
      is_forward ? std::rotate(from + 1, to, to + 1) : std::rotate(from, from + 1, to);
      std::erase_if(all, [&](const Action& action) {
        const auto* move = std::get_if<Move>(&action);
        return move && move->to == dropped && dropped != x;
      });
    }
  }

  /// Returns the output, or the gradient of the input.
  static SlotId result_of(const Action& action) {
    const auto* forward = std::get_if<Forward>(&action);
    return forward ? forward->output : std::get<Backward>(action).input_gradients[0];
  }

  /// Emits products piece by piece. Gathered rows come from the rank before, and a rank sends a
  /// piece on while it uses it. A rank adds its terms of a sum to those that come from the rank
  /// before and sends them on while it computes the next piece; its own piece comes last.
  void stream(const std::vector<Action>& products, const Move* gather, const Move* scatter) {
    const SlotId rows = gather ? gather->from : scatter->to;
    const auto part = [&](SlotId whole, Size shift) { return piece(whole, rows, shift % ranks_); };
    const auto emit = [&](Gradients gradients, Size k, Size shift) {
      for (Action action : products) {
        if (gradients != Gradients::all) {
          auto halves = split_gradients(std::get<Backward>(action));
          action = gradients == Gradients::of_inputs ? halves.first : halves.second;
        }
        rename_slots(action, [&](SlotId id) { return part(id, shift); });
        compute_of(action)->ring_part = k;
        tensors_.emit(std::move(action));
      }
    };
    const auto pass_on = [&](SlotId from, SlotId to, Phase phase) {
      tensors_.pass_on(from, to, phase, "model");
    };
    // While the inputs go round one way, the gradients of inputs need them in another order.
    const bool separates = gather && scatter;
    SlotId sent = no_slot, sum = no_slot;
    if (gather) tensors_.accumulate(rows, part(gather->to, 0), false);
    for (Size k = 0; k < ranks_; ++k) {
      const bool goes_on = k + 1 < ranks_;
      if (gather && goes_on) pass_on(part(gather->to, k), part(gather->to, k + 1), Phase::start);
      emit(separates ? Gradients::of_inputs : Gradients::all, k, scatter ? k + 1 : k);
      if (scatter) {
        const SlotId own = part(scatter->from, k + 1);
        if (k > 0) {
          pass_on(sent, sum, Phase::finish);
          tensors_.accumulate(goes_on ? sum : own, goes_on ? own : sum, true);
        }
        sent = own;
        sum = k + 2 < ranks_ ? shifted(scatter->to, k + 2) : scatter->to;
        if (goes_on) pass_on(sent, sum, Phase::start);
      }
      if (separates) emit(Gradients::of_parameters, k, k);
      if (gather && goes_on) pass_on(part(gather->to, k), part(gather->to, k + 1), Phase::finish);
    }
  }

  /// Returns the slot of those rows of a tensor that the rank `shift` places before has of `rows`.
  SlotId piece(SlotId whole, SlotId rows, Size shift) {
    SlotId& made = pieces_.try_emplace({whole, shift}, no_slot).first->second;
    if (made != no_slot) return made;
    made = tensors_.add_like(whole);
    Slot& slot = tensors_.plan().slots.back();
    slot.piece_of = whole;
    for (const Cut& cut : tensors_.slot(rows).cuts)
      if (cut.axes.contains(axis_)) slot.cuts.push_back(cut);
    slot.cuts.back().shift = shift;
    return made;
  }

  /// Adds a slot like `rows`, for those of the rank `shift` places before.
  SlotId shifted(SlotId rows, Size shift) {
    const SlotId id = tensors_.add_like(rows);
    for (Cut& cut : tensors_.plan().slots.back().cuts)
      if (cut.axes.contains(axis_)) cut.shift = shift;
    return id;
  }

  const std::vector<LayerSpec>& layers_;
  const std::vector<LayerPlacements>& placed_;
  PassTensors& tensors_;
  std::size_t axis_;
  Size ranks_;
  bool joins_;  ///< each product may use parameters and gradients of a bucket of its own
  std::map<SlotId, SlotId> rows_of_;  ///< the tensors from which those of a list are gathered
  std::map<std::pair<SlotId, Size>, SlotId> pieces_;  ///< by tensor and shift
};

}  // namespace

void stream_moves(const PlanInput& input, const std::vector<LayerPlacements>& placed,
                  PassTensors& tensors) {
  Streaming streaming(input, placed, tensors);
  for (const PassTensors::List list :
       {&ChunkPass::forward, &ChunkPass::backward, &ChunkPass::weights})
    streaming.run(list);
}

}  // namespace tessera::detail
