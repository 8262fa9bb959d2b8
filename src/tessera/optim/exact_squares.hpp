// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <tessera/base/view.hpp>
#include <tessera/optim/square_limbs.hpp>

namespace tessera {

/// Sums of squares without rounding in the sum, so that the result does not depend on the order or
/// on how elements are spread over ranks. Each square is cut into three integers of `bits` bits,
/// relative to the largest magnitude of all elements (pre-rounding: Demmel and Nguyen 2013);
/// doubles add such integers exactly. The rest is below 2^(2 - 3 bits) of the largest square.
class ExactSquares {
 public:
  /// `elements`: the most elements that are summed over all ranks.
  explicit ExactSquares(Size elements);

  /// Raises largest(0) to the largest magnitude in v; overwrites largest(1). Does not wait for the
  /// device. T: float, double.
  template <class T>
  static void raise_to_largest(const Vector<const T>& v, const Vector<double>& largest);

  /// Adds the limbs of the squares of v to sums(0), sums(1) and sums(2); overwrites sums(3).
  /// `largest` is the largest magnitude of all elements on all ranks. NaN gives NaN.
  template <class T>
  void add(const Vector<const T>& v, double largest, const Vector<double>& sums) const;

  /// Returns the sum of squares, from the sums of all limbs.
  double total(std::span<const double, square_limbs> sums, double largest) const;

 private:
  int bits_;
};

}  // namespace tessera
