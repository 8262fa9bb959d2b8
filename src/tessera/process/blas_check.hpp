// SPDX-License-Identifier: Apache-2.0
// OpenBLAS picks its kernels by processor model. On a model that is newer than the library it falls
// back to much slower kernels. This check compares them with the features of the processor.
#pragma once

#include <optional>
#include <string>

namespace tessera {

/// Vector instructions that both the processor and the operating system support.
struct CpuFeatures {
  bool avx2_fma = false;
  bool avx512 = false;  ///< F, BW, VL and DQ, which OpenBLAS' AVX-512 kernels need
};
CpuFeatures cpu_features();

/// The OpenBLAS that this process has loaded.
struct OpenBlas {
  std::string version;        ///< "0.3.21"
  std::string core;           ///< whose kernels it uses: "Haswell", "SkylakeX", ...
  bool dynamic_arch = false;  ///< holds the kernels of several cores
};
/// Returns nothing for another library.
std::optional<OpenBlas> find_openblas();

/// Returns the core whose kernels suit the processor if those in use need fewer features than it
/// has. Returns nothing for a core that this function does not know.
std::optional<std::string> better_core(const CpuFeatures& cpu, const OpenBlas& blas);

/// The BLAS of this process, for the provenance.
struct BlasStatus {
  std::string library;           ///< file that holds the matrix product; empty if unknown
  std::optional<OpenBlas> blas;  ///< nothing for another library
  std::string onednn;            ///< version of oneDNN beside it; empty without one
  std::string advice;            ///< how to get faster kernels; empty if there is nothing to do
  int threads = 0;               ///< of a product; 0 if the library does not report them
};

/// Returns true if float32 products of this version of oneDNN ("2.6.0") compute with the stack
/// pointer: a signal handler that runs meanwhile on the stack of the thread destroys data. Versions
/// before 3.11 do so on x86.
bool breaks_signal_handlers(const std::string& onednn);

/// "OpenBLAS 0.3.21, core SkylakeX, oneDNN 3.11.0, 2 threads", with the advice if there is any.
std::string describe(const BlasStatus& status);

/// Finds out which BLAS this process uses, and whether it could use faster kernels.
BlasStatus check_blas();

/// Gives products as many threads as kernels have, unless a variable of the BLAS sets their number.
/// Returns the number of threads of products; 0 if the library does not report it. Call it before
/// the first product. Throws Error (out_of_memory) if OpenBLAS would not get its buffers.
int limit_blas_threads(int threads);

/// Makes OpenBLAS, MKL or BLIS use one thread as long as it lives, if `applies`, whatever variables
/// say. Threads split a product into blocks whose bits differ.
class OneBlasThread {
 public:
  explicit OneBlasThread(bool applies);
  OneBlasThread(const OneBlasThread&) = delete;
  OneBlasThread& operator=(const OneBlasThread&) = delete;
  ~OneBlasThread();

 private:
  int before_ = 0;  ///< 0: nothing was changed
};

}  // namespace tessera
