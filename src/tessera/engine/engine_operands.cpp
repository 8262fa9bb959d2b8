// SPDX-License-Identifier: Apache-2.0
// What the engine's layers read and write, as the plan's slots say.
#include <tessera/engine/engine.hpp>

namespace tessera {

template <class T>
const LayerCall<T>& Engine<T>::operands_of(const Action& action, Operands& made,
                                           const Microbatch<State>& batch, Size slot) {
  const bool is_forward = action.kind == ActionKind::forward;
  if (made.samples != batch.samples) {
    made.call.emplace(is_forward ? forward_operands(action, batch)
                                 : backward_operands(action, batch));
    made.samples = batch.samples;
  }
  if (!is_forward)
    made.call->add_parameter_gradients = batch.number > 0 && !state_.reduces_every_microbatch;
  // The batch is somewhere else in every step and microbatch.
  if constexpr (std::is_same_v<State, Compute>)
    for (std::size_t i = is_forward ? 0 : 1; i < action.reads.size(); ++i)
      if (action.reads[i] == slot_of_x) made.call->inputs[is_forward ? i : i - 1] = batch.x;
  if (row_of(layers_[action.index]).reads_batch) made.call->batch = facts_of(action, batch, slot);
  return *made.call;
}

template <class T>
auto Engine<T>::facts_of(const Action& action, const Microbatch<State>& batch, Size slot) const
    -> BatchFacts<State> {
  BatchFacts<State> facts{batch.x, batch.first, steps_};
  facts.from_prior = batch.from_prior;
  if (action.kind == ActionKind::forward && !action.again &&
      row_of(layers_[action.index]).adds_loss)
    facts.loss = sums_.data() + loss_slot(batch, slot) + 1;
  facts.gradient_scale =
      static_cast<State>(loss_scale_.value()) / static_cast<State>(loss_divisor(batch));
  return facts;
}

/// All memory that tensors share; the caller opens its operands. No call of MPI may follow, in
/// which messages of other tensors go on.
template <class T>
void Engine<T>::close_arenas(MemoryGuard& guard) const {
  guard.close(frame_.memory()), guard.close(scratch_);
  for (const StateArena<State>* arena : {&parameters_, &gradients_})
    guard.close(arena->flat()), guard.close(arena->buffer());
  guard.close(used_.flat()), guard.close(used_.buffer());
}

template <class T>
LayerCall<T> Engine<T>::operands_of_layer(Size layer, const Microbatch<State>& batch) const {
  LayerCall<Compute> call{layers_[layer], gemm_, batch.samples};
  call.scratch = scratch_;
  const std::vector<ParameterView>& views = views_[layer];
  for (std::size_t p = 0; p < views.size(); ++p)
    call.parameters[p] = used_.part(views[p].bucket, views[p].elements);
  return call;
}

/// The batch itself may have another type than layers compute with.
template <class T>
bool Engine<T>::reads_x_as_fact(Size layer, SlotId input) const {
  return input == slot_of_x && row_of(layers_[layer]).reads_batch;
}

template <class T>
LayerCall<T> Engine<T>::forward_operands(const Action& action,
                                         const Microbatch<State>& batch) const {
  LayerCall<Compute> call = operands_of_layer(action.index, batch);
  for (std::size_t i = 0; i < action.reads.size(); ++i)
    if (!reads_x_as_fact(action.index, action.reads[i]))
      call.inputs[i] = frame_.read(action.reads[i], batch);
  if (const SlotId output = action.writes[0]; frame_.holds_sums(output))
    call.output_terms = frame_.sums(output, batch);
  else
    call.output = frame_(output, batch);
  if (action.writes.size() > 1) call.kept = frame_.sums(action.writes[1], batch);
  return call;
}

template <class T>
LayerCall<T> Engine<T>::backward_operands(const Action& action,
                                          const Microbatch<State>& batch) const {
  LayerCall<Compute> call = operands_of_layer(action.index, batch);
  const std::size_t inputs = action.writes.size();
  call.output_gradient = frame_.read(action.reads[0], batch);
  for (std::size_t i = 0; i < inputs; ++i) {
    const SlotId read = action.reads[1 + i];
    if (read != no_slot && !reads_x_as_fact(action.index, read))
      call.inputs[i] = frame_.read(read, batch);
    const SlotId gradient = action.writes[i];
    if (gradient == no_slot) continue;
    if (frame_.holds_sums(gradient))
      call.input_gradient_terms[i] = frame_.sums(gradient, batch);
    else
      call.input_gradients[i] = frame_(gradient, batch);
  }
  if (action.reads[1 + inputs] != no_slot) call.output = frame_(action.reads[1 + inputs], batch);
  if (action.reads[2 + inputs] != no_slot) call.kept = frame_.sums(action.reads[2 + inputs], batch);
  call.add_input_gradients = action.adds;
  const std::vector<ParameterView>& views = views_[action.index];
  for (std::size_t p = 0; p < views.size() && action.kind != ActionKind::backward_inputs; ++p)
    call.parameter_gradients[p] = gradients_.part(views[p].bucket, views[p].elements);
  return call;
}

TESSERA_INSTANTIATE_CLASS(Engine);

}  // namespace tessera
