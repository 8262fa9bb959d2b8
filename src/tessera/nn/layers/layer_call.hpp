// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include <tessera/base/view.hpp>
#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/nn/products/gemm.hpp>

namespace tessera {

/// Facts about the microbatch, for kinds with LayerKind::reads_batch. State: as in LayerCall.
template <class State>
struct BatchFacts {
  Matrix<const State> x{};  ///< not rounded to the compute type
  Size first = 0;           ///< number of the first sample in the global batch
  Size step = 0;            ///< number of the training step, from 1
  /// Forward writes the parts that the layer adds to the loss sum here, in the order of
  /// LayerKind::loss_terms; null if the pass recomputes.
  double* loss = nullptr;
  /// Forward of a router adds three rows with a number per expert: its choices, its dropped
  /// choices, and its terms of the entropy of the probabilities; null if nobody counts.
  double* routing = nullptr;
  /// Factor of the gradients of the parts in `loss`: loss scale / global count.
  State gradient_scale = 0;
  /// Layers with LatentDraw draw from the prior and ignore their inputs.
  bool from_prior = false;
};

/// The part of a layer that runs once for the shared rows of each rank of `context`, in turn. Sums
/// over the parts stay in the outputs or, with a 16-bit compute type, in LayerCall::output_terms.
struct RingPart {
  Size keys_of = -1;  ///< the rank whose rows are there; -1: the layer has one part
  bool is_first = true, is_last = true;
};

/// The operands of a layer on one microbatch of a rank, which may have 0 rows. The caller sets only
/// the operands that the layer's LayerKind reads.
///
/// A gradient is wanted if its View has memory, and kernels must not write any other. That of an
/// input is not wanted if the input is the batch. Schedules may split backward of kinds with
/// products in two passes, one for inputs and one for parameters.
///
/// T is the compute type. Results that are terms of a sum over ranks are written unrounded, in the
/// state type, to the `_terms` View if that has memory; the plain View is then empty.
template <class T>
struct LayerCall {
  using State = StateOf<T>;

  const LayerSpec& layer;  ///< with the rank's extents
  const Gemm<T>& gemm;
  Size samples = 0;
  LayerBlocks blocks{};
  std::array<Matrix<const T>, max_layer_inputs> inputs{};  ///< (rows, columns_of(input))
  Matrix<T> output{};                                      ///< (rows, out)
  Matrix<State> output_terms{};                            ///< (rows, out)
  Matrix<State> saved{};                                   ///< (rows, LayerKind::saved_columns)
  RingPart ring{};
  Vector<State> scratch{};  ///< LayerKind::scratch elements; contents are lost
  BatchFacts<State> batch{};
  /// Row-major; an empty View for a parameter that the layer does not have.
  std::array<Vector<const T>, max_layer_parameters> parameters{};

  // Operands of backward.
  Matrix<const T> output_gradient{};                                   ///< (rows, out)
  std::array<Matrix<T>, max_layer_inputs> input_gradients{};           ///< (rows, in)
  std::array<Matrix<State>, max_layer_inputs> input_gradient_terms{};  ///< (rows, in)
  bool add_input_gradients = false;                                    ///< adds to input_gradients
  std::array<Vector<State>, max_layer_parameters> parameter_gradients{};  ///< row-major
  bool add_parameter_gradients = false;  ///< adds to parameter_gradients
  /// Columns over which a norm of heads sums these gradients; -1: all.
  Range columns{0, -1};

  bool wants_input_gradient(std::size_t input) const {
    return input_gradients[input].data() != nullptr ||
           input_gradient_terms[input].data() != nullptr;
  }
  /// Calls f with the View of the output: its terms in the state type, or the output itself.
  template <class F>
  void with_output(const F& f) const {
    output_terms.data() != nullptr ? f(output_terms) : f(output);
  }
  /// Calls f with the View of an input's gradient, its terms or itself; not if it is not wanted.
  template <class F>
  void with_input_gradient(std::size_t input, const F& f) const {
    if (input_gradient_terms[input].data() != nullptr)
      f(input_gradient_terms[input]);
    else if (input_gradients[input].data() != nullptr)
      f(input_gradients[input]);
  }
  bool wants_input_gradients() const {
    for (std::size_t i = 0; i < max_layer_inputs; ++i)
      if (wants_input_gradient(i)) return true;
    return false;
  }
};

/// Calls f(view) for all memory that a layer's kernels may touch, without the batch's facts.
template <class T, class F>
void for_each_operand(const LayerCall<T>& call, const F& f) {
  for (const auto& view : call.inputs) f(view);
  f(call.output), f(call.output_terms), f(call.saved), f(call.scratch), f(call.output_gradient);
  for (const auto& view : call.parameters) f(view);
  for (const auto& view : call.input_gradients) f(view);
  for (const auto& view : call.input_gradient_terms) f(view);
  for (const auto& view : call.parameter_gradients) f(view);
}

/// Returns null for an empty View, whose own pointer may not be null.
template <class T>
T* data_or_null(const Vector<T>& v) {
  return v.extent(0) == 0 ? nullptr : v.data();
}

/// Runs the kernels of a layer. Neither allocates nor waits for the device. Backward of a layer
/// without parameters runs only if a gradient is wanted. Defined for float, double, BFloat16 and
/// Float16.
template <class T>
void forward(const LayerCall<T>& call) {
  call.layer.kind->forward.run(call);
}
template <class T>
void backward(const LayerCall<T>& call) {
  if (call.layer.uses_parameters() || call.wants_input_gradients())
    call.layer.kind->backward.run(call);
}

}  // namespace tessera
