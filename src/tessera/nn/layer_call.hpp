// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include <tessera/base/view.hpp>
#include <tessera/nn/gemm.hpp>
#include <tessera/nn/layer_row.hpp>

namespace tessera {

inline constexpr std::size_t max_layer_inputs = 2;
inline constexpr std::size_t max_layer_parameters = 2;

/// The operands of a layer on one microbatch of a rank. `rows` may be 0. What a row of the table of
/// kinds says it does not read is not set, and a View without memory is not wanted.
template <class T>
struct LayerCall {
  const LayerSpec& layer;  ///< with the rank's extents
  const Gemm<T>& gemm;
  std::array<Matrix<const T>, max_layer_inputs> inputs{};  ///< (rows, in)
  Matrix<T> output{};                                      ///< (rows, out)
  Matrix<T> kept{};                                        ///< (rows, LayerRow::kept_columns)
  /// Row-major, of the parameters' shapes; empty for a parameter that the layer does not have.
  std::array<Vector<const T>, max_layer_parameters> parameters{};

  // Of backward only.
  Matrix<const T> output_gradient{};                          ///< (rows, out)
  std::array<Matrix<T>, max_layer_inputs> input_gradients{};  ///< (rows, in)
  bool add_input_gradients = false;                           ///< to what input_gradients hold
  /// Not wanted of layers with products when their two halves of a backward pass come apart.
  std::array<Vector<T>, max_layer_parameters> parameter_gradients{};
  bool add_parameter_gradients = false;  ///< to what parameter_gradients hold
};

/// Neither allocates nor waits for the device. T: float, double.
inline void forward(const LayerCall<float>& call) { row_of(call.layer).forward.of_float(call); }
inline void forward(const LayerCall<double>& call) { row_of(call.layer).forward.of_double(call); }
inline void backward(const LayerCall<float>& call) { row_of(call.layer).backward.of_float(call); }
inline void backward(const LayerCall<double>& call) { row_of(call.layer).backward.of_double(call); }

}  // namespace tessera
