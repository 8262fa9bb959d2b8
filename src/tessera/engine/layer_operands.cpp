// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/alias.hpp>
#include <tessera/engine/layer_operands.hpp>
#include <tessera/plan/grains.hpp>

namespace tessera {
namespace {

HalfProducts half_products_of(const PlanInput& input) {
  return input.emulates_products ? HalfProducts::emulated : half_products(input.compute_type);
}

}  // namespace

template <class T>
LayerOperands<T>::LayerOperands(const Plan& plan, Size rank, const Frame<T>& frame,
                                const StateArena<T>& used, const GradientTree<State>& gradients)
    : stage_(plan.stage(rank)),
      frame_(frame),
      used_(used),
      gradients_(gradients),
      layers_(plan.local_layers(rank)),
      along_(plan.along(rank)),
      adds_microbatches_(!plan.state(rank).reduces_every_microbatch),
      views_(layers_.size()),
      gemm_(plan.input.precision, matmul_scratch(plan, rank), half_products_of(plan.input),
            plan.input.numerics.reproducible),
      scratch_(allocate_vector<State>("tessera::layer_scratch", layer_scratch(plan, rank))) {
  for (const ParameterPlan& parameter : stage_.parameters.parameters)
    views_[parameter.layer].push_back(
        {parameter.bucket,
         {parameter.place.begin, num_elements(plan.piece(rank, parameter).extent)},
         parameter.partial_gradient && plan.input.mesh.size_of("model") > 1});
  for (std::size_t l = 0; l < layers_.size(); ++l)
    blocks_.push_back(layer_blocks(plan.input, plan.input.model.layers[l], plan.layouts[l]));
}

template <class T>
LayerCall<T>& LayerOperands<T>::of(const Action& action, std::optional<LayerCall<T>>& call,
                                   const Microbatch<State>& batch) const {
  if (!call || call->samples != samples_of(action, batch)) call.emplace(make(action, batch));
  if (action.is(StepOperation::backward)) {
    call->add_parameter_gradients =
        batch.number > 0 && adds_microbatches_ && !gradients_.sums_in_tree();
    if (gradients_.sums_in_tree()) set_parameter_gradients(*call, action, batch.number);
  }
  // The batch has another address in every step and microbatch.
  const std::vector<SlotId>& inputs = action.operands.inputs;
  if constexpr (std::is_same_v<State, T>)
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i] == slot_of_x) call->inputs[i] = batch.x;
  return *call;
}

template <class T>
LayerCall<T> LayerOperands<T>::make(const Action& action, const Microbatch<State>& batch) const {
  LayerCall<T> call{layers_[action.index], gemm_, samples_of(action, batch), blocks_[action.index]};
  call.scratch = scratch_;
  if (const Size ways = along_.context_ranks; action.part >= 0)
    call.ring = {(along_.context + ways - action.part) % ways, action.part == 0,
                 action.part + 1 == ways};
  if (action.operands.terms != no_slot)
    call.output_terms = frame_.in_state_type(action.operands.terms, batch);
  const std::vector<ParameterView>& views = views_[action.index];
  for (std::size_t p = 0; p < views.size(); ++p)
    call.parameters[p] = used_.part(views[p].bucket, views[p].elements);
  const std::vector<SlotId>& inputs = action.operands.inputs;
  const bool reads_exact_x = row_of(layers_[action.index]).reads_exact_x;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    // A layer with reads_exact_x reads x in LayerCall::batch. The type of x may differ from T.
    if (inputs[i] != no_slot && !(inputs[i] == slot_of_x && reads_exact_x))
      call.inputs[i] = frame_.read(inputs[i], batch);
  if (action.operands.saved != no_slot)
    call.saved = frame_.in_state_type(action.operands.saved, batch);
  if (action.is(StepOperation::forward))
    add_outputs(call, action, batch);
  else
    add_gradients(call, action, batch);
  return call;
}

template <class T>
void LayerOperands<T>::add_outputs(LayerCall<T>& call, const Action& action,
                                   const Microbatch<State>& batch) const {
  const SlotId output = action.operands.output;
  if (frame_.has_compute_type(output))
    call.output = frame_(output, batch);
  else
    call.output_terms = frame_.in_state_type(output, batch);
}

template <class T>
void LayerOperands<T>::add_gradients(LayerCall<T>& call, const Action& action,
                                     const Microbatch<State>& batch) const {
  const Operands& operands = action.operands;
  call.output_gradient = frame_.read(operands.output_gradient, batch);
  if (operands.output != no_slot) call.output = frame_(operands.output, batch);
  for (std::size_t i = 0; i < operands.input_gradients.size(); ++i) {
    const SlotId gradient = operands.input_gradients[i];
    if (gradient == no_slot) continue;
    if (frame_.has_compute_type(gradient))
      call.input_gradients[i] = frame_(gradient, batch);
    else
      call.input_gradient_terms[i] = frame_.in_state_type(gradient, batch);
  }
  call.add_input_gradients = action.adds;
  set_parameter_gradients(call, action, batch.number);
}

template <class T>
void LayerOperands<T>::set_parameter_gradients(LayerCall<T>& call, const Action& action,
                                               Size microbatch) const {
  if (action.gradients == Gradients::of_inputs) return;
  const std::vector<ParameterView>& views = views_[action.index];
  for (std::size_t p = 0; p < views.size(); ++p)
    call.parameter_gradients[p] = gradients_.part(microbatch, views[p].bucket, views[p].elements);
}

template <class T>
void LayerOperands<T>::complete_gradients(Size layer, Size microbatch) const {
  for (const ParameterView& view : views_[layer])
    if (!view.is_partial) gradients_.complete(microbatch, view.bucket, view.elements);
}

TESSERA_INSTANTIATE_CLASS(LayerOperands);

}  // namespace tessera
