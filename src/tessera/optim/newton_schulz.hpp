// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/nn/products/gemm.hpp>
#include <tessera/optim/newton_schulz_products.hpp>

namespace tessera {

/// Orthogonalizes matrices: moves all singular values of X near 1, without a decomposition, by five
/// steps X <- (a + b XX' + c (XX')^2) X from X / ||X|| (Jordan 2024). PyTorch's Muon computes them
/// in bf16; this one in T: float or double.
template <class T>
class NewtonSchulz {
 public:
  /// With `fixed_order`, the bits depend on the matrix alone.
  NewtonSchulz(const NewtonSchulzScratch& scratch, bool fixed_order);

  /// Returns the matrix that is orthogonalized next, to be filled.
  Matrix<T> matrix(Size rows, Size cols) const;
  /// Orthogonalizes matrix(). Does not wait for the device.
  void orthogonalize(const Matrix<T>& matrix) const;

 private:
  Gemm<T> gemm_;
  Vector<T> matrix_, next_, gram_, polynomial_;
  Vector<double> squares_;  ///< (1), the squared norm
};

}  // namespace tessera
