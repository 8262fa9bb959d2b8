// SPDX-License-Identifier: Apache-2.0
// OpenBLAS picks its kernels by processor model and falls back to much slower ones on models that
// are newer than itself. Asking the processor for its features finds that out.
#pragma once

#include <optional>
#include <string>

namespace tessera {

/// Vector instructions that both the processor and the operating system support.
struct CpuFeatures {
  bool avx2_fma = false;
  bool avx512 = false;  ///< F, BW, VL and DQ: what OpenBLAS' AVX-512 kernels need
  bool avx512_bf16 = false;
};
CpuFeatures cpu_features();

/// The OpenBLAS that this process has loaded.
struct OpenBlas {
  std::string version;        ///< "0.3.21"
  std::string core;           ///< whose kernels it uses: "Haswell", "SkylakeX", ...
  bool dynamic_arch = false;  ///< holds the kernels of several cores, so that the core can change
};
std::optional<OpenBlas> find_openblas();

/// The core whose kernels suit the processor, if those in use need fewer features than it has.
/// Cores that this function does not know are trusted.
std::optional<std::string> better_core(const CpuFeatures& cpu, const OpenBlas& blas);

/// Whether version a, "0.3.21", is b or later.
bool version_at_least(const std::string& a, const std::string& b);

/// What was found and done; the text of the provenance.
struct BlasStatus {
  std::string library;             ///< file that the GEMM comes from; empty if unknown
  std::optional<OpenBlas> blas;    ///< none: another library
  std::optional<std::string> was;  ///< the core before it was corrected
  std::string remark;              ///< why it was left as it is, if it could be better
  int threads = 0;                 ///< of a product; 0: as the library decides
};

/// "OpenBLAS 0.3.21, core Cooperlake (was Haswell: corrected), 2 threads".
std::string describe(const BlasStatus& status);

/// Gives products as many threads as kernels have, unless a variable of the library says otherwise.
/// Returns how many they have; 0 where the library does not tell. Call it before the first product.
int limit_blas_threads(int threads);

/// If another core suits better, the user has not chosen
/// one (OPENBLAS_CORETYPE) and `may_restart`, the process executes itself again with `argv`, once:
/// call it before anything that must not happen twice, MPI_Init above all.
BlasStatus check_blas(int argc, const char* const* argv, bool may_restart);

}  // namespace tessera
