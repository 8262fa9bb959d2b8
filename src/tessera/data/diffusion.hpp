// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>

namespace tessera {

// Solves -div(a grad u) = f on the unit square with u = 0 on its boundary, by finite volumes on n x
// n equal cells (five-point scheme). The coefficient between two cells is the harmonic mean of the
// two; at the boundary, half a cell away, it is twice that of the cell. Fields are (samples, n *
// n), with x1 slowest.

/// Computes u for f = 1 by conjugate gradients from u = 0 to a relative residual of 1e-8. The bits
/// of a sample do not depend on the others. A sample that does not converge is NaN.
void solve_diffusion(const Matrix<const double>& a, const Matrix<double>& u,
                     const Vector<double>& scratch);

/// Returns the number of elements of `scratch`.
Size diffusion_scratch(Size samples, Size n);

}  // namespace tessera
