// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <sys/mman.h>
#include <vector>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/openblas_core.hpp>
#include <tessera/base/text.hpp>
#include <tessera/process/blas_check.hpp>

namespace tessera {
namespace {

template <class Function>
Function* find_symbol(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

std::string blas_library() {
  Dl_info info;
  void* symbol = dlsym(RTLD_DEFAULT, "sgemm_");
  if (symbol == nullptr || dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return "";
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(info.dli_fname, error);
  return error ? info.dli_fname : file.string();
}

/// How to ask the loaded BLAS for its number of threads, and to set it.
struct BlasThreads {
  const char* variable = "";  ///< by which the user sets it
  int (*get)() = nullptr;     ///< null: another library
  void (*set)(int) = nullptr;
};

const BlasThreads& blas_threads() {
  static const BlasThreads found = []() -> BlasThreads {
    if (auto* set = find_symbol<void(int)>("openblas_set_num_threads"))
      return {"OPENBLAS_NUM_THREADS", find_symbol<int()>("openblas_get_num_threads"), set};
    if (auto* set = find_symbol<void(int)>("MKL_Set_Num_Threads"))
      return {"MKL_NUM_THREADS", find_symbol<int()>("MKL_Get_Max_Threads"), set};
    static auto* const get_long = find_symbol<long()>("bli_thread_get_num_threads");
    static auto* const set_long = find_symbol<void(long)>("bli_thread_set_num_threads");
    if (get_long == nullptr || set_long == nullptr) return {};
    return {"BLIS_NUM_THREADS", [] { return static_cast<int>(get_long()); },
            [](int threads) { set_long(threads); }};
  }();
  return found;
}

/// OpenBLAS allocates 128 MiB for each thread that multiplies, and retries for ever if the system
/// refuses them. So ask for them first.
void check_openblas_memory(int threads) {
  const std::size_t bytes = ((std::size_t{128} << 20) + (std::size_t{64} << 10)) * threads;
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(
        ExitCode::out_of_memory,
        "out of memory: OpenBLAS cannot get the 128 MiB that it needs for each thread (limit of "
        "memory: ulimit -v)");
  munmap(memory, bytes);
}

/// Computes the smallest product, so that OpenBLAS allocates the buffer of the calling thread while
/// there is memory for it.
void take_openblas_buffer() {
  using Sgemm =
      void(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
           const int*, const float*, const int*, const float*, float*, const int*);
  auto* const sgemm = find_symbol<Sgemm>("sgemm_");
  if (sgemm == nullptr) return;
  const int n = 1;
  const float one = 1;
  float product = 0;
  sgemm("N", "N", &n, &n, &n, &one, &one, &n, &one, &n, &one, &product, &n);
}

}  // namespace

std::string onednn_text(int major, int minor, int patch) {
#ifdef __x86_64__
  const bool breaks_handlers = major < 3 || (major == 3 && minor < 11);
#else
  const bool breaks_handlers = false;
#endif
  return fmt::format("oneDNN {}.{}.{}{}", major, minor, patch,
                     breaks_handlers ? " (breaks signal handlers)" : "");
}

BlasStatus start_blas(int threads) {
  const BlasThreads& blas = blas_threads();
  BlasStatus status;
  status.library = blas_library();
  std::vector<std::string> parts;
  auto* const get_config = find_symbol<char*()>("openblas_get_config");
  const std::string core = openblas_core();
  const bool is_openblas = !core.empty() && get_config != nullptr && blas.get != nullptr;
  if (is_openblas) {
    // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Haswell MAX_THREADS=64"
    const std::string config = get_config();
    const std::string name = config.substr(0, config.find(' ', config.find(' ') + 1));
    parts.push_back(fmt::format("{}, core {}", name, core));
    const std::string faster = faster_core(cpu_features(), core);
    // Others hold the kernels of one core.
    if (!faster.empty() && config.find("DYNAMIC_ARCH") != std::string::npos)
      status.advice = fmt::format(
          "{} uses its kernels for {}; kernels for {} are faster on this processor: export "
          "OPENBLAS_CORETYPE={}",
          name, core, faster, faster);
  } else {
    parts.push_back(status.library.empty() ? "unknown" : status.library + " (not OpenBLAS)");
  }
  // The struct that it returns begins with the three numbers.
  if (auto* const version = find_symbol<const int*()>("dnnl_version"))
    parts.push_back(onednn_text(version()[0], version()[1], version()[2]));

  const bool is_chosen = std::getenv(blas.variable) != nullptr;
  // Our threads share products (nn/products/shared_product.hpp), so a library multiplies on one.
  auto* const set_openmp = find_symbol<void(int)>("omp_set_num_threads");
  if (set_openmp != nullptr && !is_chosen) set_openmp(1);
  if (blas.get != nullptr) {
    if (is_openblas) check_openblas_memory(threads);
    if (!is_chosen) blas.set(1);
    if (is_openblas) take_openblas_buffer();
    parts.push_back(counted(blas.get(), "thread"));
  }
  status.text = join(parts, ", ");
  return status;
}

}  // namespace tessera
