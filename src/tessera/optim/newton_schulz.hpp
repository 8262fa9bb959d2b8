// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/nn/products/gemm.hpp>

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

/// Orthogonalises matrices: moves all singular values of X near 1, without a decomposition, by five
/// steps X <- (a + b XX' + c (XX')^2) X from X / ||X|| (Jordan 2024). PyTorch's Muon computes them
/// in bf16; this one in T: float or double.
template <class T>
class NewtonSchulz {
 public:
  /// With `fixed_order`, the bits depend on the matrix alone.
  NewtonSchulz(const NewtonSchulzScratch& scratch, bool fixed_order);

  /// Returns the matrix that is orthogonalized next, to be filled.
  Matrix<T> matrix(Size rows, Size cols) const;
  /// Orthogonalises matrix(). Does not wait for the device.
  void orthogonalize(const Matrix<T>& matrix) const;

 private:
  Gemm<T> gemm_;
  Vector<T> matrix_, next_, gram_, polynomial_;
  Vector<double> squares_;  ///< (1), the squared norm
};

}  // namespace tessera
