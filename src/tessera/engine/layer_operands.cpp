// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/alias.hpp>
#include <tessera/engine/layer_operands.hpp>
#include <tessera/plan/grains.hpp>

namespace tessera {
namespace {

HalfProducts half_products_of(const PlanInput& input) {
  return input.emulates_products() ? HalfProducts::emulated : half_products(input.compute_type);
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
      adds_microbatches_(!plan.state(rank).reduces_every_microbatch),
      views_(layers_.size()),
      gemm_(plan.input.precision, plan_scratch(plan, rank).products, half_products_of(plan.input),
            plan.input.numerics.reproducible),
      scratch_(allocate_vector<State>("tessera::layer_scratch", plan_scratch(plan, rank).layers)) {
  for (const ParameterPlan& parameter : stage_.parameters.parameters)
    views_[parameter.layer].push_back(
        {parameter.bucket,
         {parameter.place.begin, num_elements(plan.piece(rank, parameter).extent)},
         parameter.partial_gradient});
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Size owner = layers_[l].tied_to;
    if (owner < 0 || views_[owner].empty()) continue;
    views_[l] = {views_[owner].front()};
    views_[l][0].use = plan.input.sums_uses_apart() ? 1 : 0;
    if (!plan.input.ties_stages() && !plan.input.sums_uses_apart()) tied_owner_ = owner;
  }
  for (std::size_t l = 0; l < layers_.size(); ++l)
    blocks_.push_back(
        layer_blocks(plan.input, plan.input.model.layers[l], plan.placements[l], rank));
}

template <class T>
LayerCall<T>& LayerOperands<T>::of(const Forward& forward, std::optional<LayerCall<T>>& call,
                                   const Microbatch<State>& batch) const {
  const Size samples = frame_.samples_of(forward.output, batch);
  if (!call || call->samples != samples) {
    call.emplace(make(forward, samples, batch));
    add_output(*call, forward, batch);
  }
  set_x(*call, forward, batch);
  return *call;
}

template <class T>
LayerCall<T>& LayerOperands<T>::of(const Backward& backward, std::optional<LayerCall<T>>& call,
                                   const Microbatch<State>& batch) const {
  const Size samples = frame_.samples_of(backward.output_gradient, batch);
  if (!call || call->samples != samples) {
    call.emplace(make(backward, samples, batch));
    add_gradients(*call, backward, batch);
  }
  const bool adds = batch.number > 0 && adds_microbatches_ && !gradients_.sums_in_tree();
  const bool is_later_part = backward.ring_part > 0;
  call->add_parameter_gradients = adds || is_later_part || backward.layer == tied_owner_;
  if (gradients_.sums_in_tree()) set_parameter_gradients(*call, backward, batch.number);
  if (!adds && !is_later_part && backward.gradients != Gradients::of_inputs)
    clear_rest_of_unit(backward.layer, batch.number);
  set_x(*call, backward, batch);
  return *call;
}

template <class T>
LayerCall<T> LayerOperands<T>::of_stack(const LayerCall<T>& call, const Backward& backward,
                                        const Microbatch<State>& batch, Size stack) const {
  LayerCall<T> own = call;
  const Range samples = Split{.units = call.samples,
                              .parts = static_cast<Size>(batch.of_batch->of_ranks().size()),
                              .filled = batch.of_batch->filled(batch.number)}
                            .place(stack);
  const auto take = [&](auto& matrix) {
    if (matrix.extent(0) == 0) return;
    const Size rows = static_cast<Size>(matrix.extent(0)) / call.samples;
    matrix = rows_of(matrix, {samples.begin * rows, samples.count * rows});
  };
  for (auto& input : own.inputs) take(input);
  take(own.output), take(own.saved), take(own.output_gradient);
  own.samples = samples.count;
  own.input_gradients = {}, own.input_gradient_terms = {};
  set_parameter_gradients(own, backward, batch.number, stack);
  return own;
}

template <class T>
LayerCall<T> LayerOperands<T>::make(const Compute& action, Size samples,
                                    const Microbatch<State>& batch) const {
  LayerCall<T> call{layers_[action.layer], gemm_, samples, blocks_[action.layer]};
  call.scratch = scratch_;
  if (const SplitPart& share = call.layer.share; action.ring_part >= 0)
    call.ring = {(share.part + share.parts - action.ring_part) % share.parts, action.ring_part == 0,
                 action.ring_part + 1 == share.parts};
  if (action.ring_sums != no_slot)
    call.output_terms = frame_.in_state_type(action.ring_sums, batch);
  const std::vector<ParameterView>& views = views_[action.layer];
  for (std::size_t p = 0; p < views.size(); ++p)
    call.parameters[p] = used_.part(views[p].bucket, views[p].elements);
  for (std::size_t i = 0; i < action.inputs.size(); ++i) {
    const SlotId input = action.inputs[i];
    // Class numbers are read in LayerCall::batch. The type of x may differ from T.
    if (input != no_slot && !(input == slot_of_x && reads_classes(call.layer)))
      call.inputs[i] = frame_.read(input, batch);
  }
  if (action.saved != no_slot) call.saved = frame_.in_state_type(action.saved, batch);
  return call;
}

/// Sets x, which has another address in every step and microbatch.
template <class T>
void LayerOperands<T>::set_x(LayerCall<T>& call, const Compute& action,
                             const Microbatch<State>& batch) const {
  if constexpr (std::is_same_v<State, T>)
    for (std::size_t i = 0; i < action.inputs.size(); ++i)
      if (action.inputs[i] == slot_of_x) call.inputs[i] = batch.x;
}

template <class T>
void LayerOperands<T>::add_output(LayerCall<T>& call, const Forward& forward,
                                  const Microbatch<State>& batch) const {
  if (frame_.has_compute_type(forward.output))
    call.output = frame_(forward.output, batch);
  else
    call.output_terms = frame_.in_state_type(forward.output, batch);
}

template <class T>
void LayerOperands<T>::add_gradients(LayerCall<T>& call, const Backward& backward,
                                     const Microbatch<State>& batch) const {
  call.output_gradient = frame_.read(backward.output_gradient, batch);
  if (backward.output != no_slot) call.output = frame_(backward.output, batch);
  for (std::size_t i = 0; i < backward.input_gradients.size(); ++i) {
    const SlotId gradient = backward.input_gradients[i];
    if (gradient == no_slot) continue;
    if (frame_.has_compute_type(gradient))
      call.input_gradients[i] = frame_(gradient, batch);
    else
      call.input_gradient_terms[i] = frame_.in_state_type(gradient, batch);
  }
  call.add_input_gradients = backward.adds;
  set_parameter_gradients(call, backward, batch.number);
}

template <class T>
void LayerOperands<T>::set_parameter_gradients(LayerCall<T>& call, const Backward& backward,
                                               Size microbatch, Size stack) const {
  if (backward.gradients == Gradients::of_inputs) return;
  const std::vector<ParameterView>& views = views_[backward.layer];
  for (std::size_t p = 0; p < views.size(); ++p)
    call.parameter_gradients[p] =
        gradients_.part(microbatch, views[p].bucket, views[p].elements, stack + views[p].use);
}

/// Sets the gradients of the parameters of a tied unit that a tied layer does not write to zero.
template <class T>
void LayerOperands<T>::clear_rest_of_unit(Size layer, Size microbatch) const {
  const Size owner = layers_[layer].tied_to;
  if (owner < 0 || views_[layer][0].use > 0) return;
  const std::vector<ParameterView>& unit = views_[owner];
  for (std::size_t p = 1; p < unit.size(); ++p)
    Kokkos::deep_copy(ExecSpace(), gradients_.part(microbatch, unit[p].bucket, unit[p].elements),
                      State(0));
}

template <class T>
void LayerOperands<T>::complete_gradients(Size layer, Size microbatch) const {
  for (const ParameterView& view : views_[layer])
    if (!view.is_partial) gradients_.complete(microbatch, view.bucket, view.elements, view.use);
}

TESSERA_INSTANTIATE_CLASS(LayerOperands);

}  // namespace tessera
