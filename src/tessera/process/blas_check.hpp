// SPDX-License-Identifier: Apache-2.0
// OpenBLAS picks its kernels by processor model. On a model that is newer than the library it falls
// back to much slower kernels. This check compares them with the features of the processor.
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

/// Returns the core whose OpenBLAS kernels suit the processor, if those of `core` need fewer
/// features than it has; else, or for an unknown core, "".
std::string faster_core(const CpuFeatures& cpu, std::string_view core);

/// Returns "oneDNN 3.11.0". Float32 products of versions before 3.11 compute with the stack pointer
/// on x86: a signal handler that runs meanwhile on the stack of the thread destroys data. The text
/// of these ends with "(breaks signal handlers)".
std::string onednn_text(int major, int minor, int patch);

/// The BLAS of this process.
struct BlasStatus {
  std::string library;  ///< file that holds the matrix product; empty if unknown
  std::string text;     ///< "OpenBLAS 0.3.21, core SkylakeX, oneDNN 3.11.0, 1 thread"
  std::string advice;   ///< how to get faster kernels; empty if there is nothing to do
};

/// Lets a product of a library run on the thread that calls it, unless the variable of the BLAS
/// sets another number, and returns what products use then. `threads` may multiply at once. Call it
/// before the first product. Throws Error (out_of_memory) if OpenBLAS would not get their buffers.
BlasStatus start_blas(int threads);

}  // namespace tessera
