// SPDX-License-Identifier: Apache-2.0
// Starts the BLAS of this process, and tells which one it is and whether it has slow kernels.
#pragma once

#include <string>

namespace tessera {

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
