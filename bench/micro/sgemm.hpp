// SPDX-License-Identifier: Apache-2.0
// The BLAS that Kokkos Kernels has brought along, called past it.
#pragma once

#include <functional>

#include <tessera/base/view.hpp>
#include <tessera/nn/products/gemm.hpp>

namespace tessera::bench {

/// C = op(A) op(B), as Gemm has them, row-major and without gaps.
using BlasProduct = std::function<void(Trans, Trans, const Matrix<const float>&,
                                       const Matrix<const float>&, const Matrix<float>&)>;

/// Empty on devices, and where there is no BLAS.
BlasProduct find_sgemm();

}  // namespace tessera::bench
