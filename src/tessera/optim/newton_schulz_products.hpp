// SPDX-License-Identifier: Apache-2.0
// The products and the memory of NewtonSchulz, for plans.
#pragma once

#include <vector>

#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/nn/products/matmul_precision.hpp>

namespace tessera {

/// Returns the products that orthogonalize a matrix: three in each of five steps.
std::vector<GemmShape> newton_schulz_products(Size rows, Size cols);
double newton_schulz_flops(const Shape& matrix);

/// Elements of memory for matrices of up to these sizes.
struct NewtonSchulzScratch {
  Size matrix = 0;  ///< of two matrices
  Size gram = 0;    ///< of two square matrices, of the shorter side
  MatmulScratch products{};

  void raise_to(Size rows, Size cols, bool fixed_order);
};

}  // namespace tessera
