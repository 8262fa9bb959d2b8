// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/nn/model_spec.hpp>

namespace tessera {

/// Floating point operations of C (m, n) += A (m, k) B (k, n): a multiplication and an addition
/// each.
constexpr Size gemm_flops(Size m, Size n, Size k) { return 2 * m * n * k; }

/// Products only, as is customary: bias, activation, loss and optimizer are not counted.
constexpr Size forward_flops(Size rows, Size in, Size out) { return gemm_flops(rows, out, in); }

/// The weight gradient, and the input gradient where it is wanted.
constexpr Size backward_flops(Size rows, Size in, Size out, bool input_gradient) {
  return (input_gradient ? 2 : 1) * gemm_flops(in, out, rows);
}

inline Size forward_flops(const ModelSpec& model, Size rows) {
  Size sum = 0;
  for (const LinearSpec& layer : model.layers) sum += forward_flops(rows, layer.in, layer.out);
  return sum;
}

/// Forward and backward of `rows` rows; the first layer's input is data and gets no gradient.
inline Size step_flops(const ModelSpec& model, Size rows) {
  Size sum = forward_flops(model, rows);
  bool input_gradient = false;
  for (const LinearSpec& layer : model.layers) {
    sum += backward_flops(rows, layer.in, layer.out, input_gradient);
    input_gradient = true;
  }
  return sum;
}

}  // namespace tessera
