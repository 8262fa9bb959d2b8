// SPDX-License-Identifier: Apache-2.0
// OpenBLAS picks its kernels by processor model. On a model that is newer than the library it falls
// back to much slower kernels, as it does where OPENBLAS_CORETYPE names an older core.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

/// Vector instructions that both the processor and the operating system support.
struct CpuFeatures {
  bool avx2_fma = false;
  bool avx512 = false;  ///< F, BW, VL and DQ, which OpenBLAS' AVX-512 kernels need
};
CpuFeatures cpu_features();

/// Returns the core whose kernels the loaded OpenBLAS uses, such as SkylakeX; "" for another BLAS.
std::string openblas_core();

/// Returns the core whose OpenBLAS kernels suit the processor, if those of `core` need fewer
/// features than it has; else, or for an unknown core, "".
std::string faster_core(const CpuFeatures& cpu, std::string_view core);

}  // namespace tessera
