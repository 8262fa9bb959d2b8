// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>

namespace tessera {

/// -div(a grad u) = f on the unit square, u = 0 on its boundary, on n x n cells of equal size: the
/// five-point scheme of finite volumes, where between two cells the harmonic mean of their
/// coefficients acts, and between a cell and the boundary, half a cell away, twice its own. A row
/// holds one sample, its cells with x1 slowest; fields of several samples are (samples, n n).

/// u for f = 1 everywhere, by conjugate gradients from 0 to a residual of 1e-8 relative to f. Bits
/// of a sample do not depend on the others. NaN for a sample that does not get there.
void solve_diffusion(const Matrix<const double>& a, const Matrix<double>& u,
                     const Vector<double>& scratch);

/// Elements of `scratch` that it needs.
Size diffusion_scratch(Size samples, Size n);

}  // namespace tessera
