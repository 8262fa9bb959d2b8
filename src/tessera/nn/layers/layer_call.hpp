// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include <tessera/base/view.hpp>
#include <tessera/nn/layers/layer_row.hpp>
#include <tessera/nn/products/gemm.hpp>

namespace tessera {

inline constexpr std::size_t max_layer_inputs = 2;
inline constexpr std::size_t max_layer_parameters = 2;

/// What a layer may ask about the microbatch, beside its operands. State: as in LayerCall.
template <class State>
struct BatchFacts {
  Matrix<const State> x{};  ///< not rounded to the compute type
  Size first = 0;           ///< number of the first sample among those of the global batch
  Size step = 0;            ///< of the training, from 1
  /// Where forward adds a term of its own to the sum of the losses; none for a forward pass that
  /// only computes again.
  double* loss = nullptr;
  /// What backward multiplies the gradient of that term by: the loss scale over the global count.
  State gradient_scale = 0;
  /// Layers that draw (LayerRow::draws) do so without regard to their inputs.
  bool from_prior = false;
};

/// The operands of a layer on one microbatch of a rank. `rows` may be 0. What a row of the table of
/// kinds says it does not read is not set, and a View without memory is not wanted.
///
/// T: the compute type. What is a term of a sum over ranks is not rounded to it before the sum has
/// been formed: where T is shorter than the state type, it stands in a `_terms` View in place of
/// the other.
template <class T>
struct LayerCall {
  using State = StateOf<T>;

  const LayerSpec& layer;  ///< with the rank's extents
  const Gemm<T>& gemm;
  Size samples = 0;
  std::array<Matrix<const T>, max_layer_inputs> inputs{};  ///< (rows, in)
  Matrix<T> output{};                                      ///< (rows, out)
  Matrix<State> output_terms{};                            ///< (rows, out)
  Matrix<State> kept{};                                    ///< (rows, LayerRow::kept_columns)
  Vector<State> scratch{};                                 ///< of any content, before and after
  BatchFacts<State> batch{};                               ///< if LayerRow::reads_batch
  /// Row-major, of the parameters' shapes; empty for a parameter that the layer does not have.
  std::array<Vector<const T>, max_layer_parameters> parameters{};

  // Of backward only.
  Matrix<const T> output_gradient{};                                   ///< (rows, out)
  std::array<Matrix<T>, max_layer_inputs> input_gradients{};           ///< (rows, in)
  std::array<Matrix<State>, max_layer_inputs> input_gradient_terms{};  ///< (rows, in)
  bool add_input_gradients = false;  ///< to what input_gradients hold
  /// Not wanted of layers with products when their two halves of a backward pass come apart.
  std::array<Vector<State>, max_layer_parameters> parameter_gradients{};
  bool add_parameter_gradients = false;  ///< to what parameter_gradients hold
};

/// Calls f(view) for the memory that a layer's kernels may touch, apart from the batch's facts.
template <class T, class F>
void for_each_operand(const LayerCall<T>& call, const F& f) {
  for (const auto& view : call.inputs) f(view);
  f(call.output), f(call.output_terms), f(call.kept), f(call.scratch), f(call.output_gradient);
  for (const auto& view : call.parameters) f(view);
  for (const auto& view : call.input_gradients) f(view);
  for (const auto& view : call.input_gradient_terms) f(view);
  for (const auto& view : call.parameter_gradients) f(view);
}

/// Of a parameter or its gradient: null for an empty View, which may still point somewhere.
template <class T>
T* data_or_null(const Vector<T>& v) {
  return v.extent(0) == 0 ? nullptr : v.data();
}

/// Neither allocates nor waits for the device. T: float, double, BFloat16, Float16.
template <class T>
void forward(const LayerCall<T>& call) {
  row_of(call.layer).forward.run(call);
}
template <class T>
void backward(const LayerCall<T>& call) {
  row_of(call.layer).backward.run(call);
}

}  // namespace tessera
