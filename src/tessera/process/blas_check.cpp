// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
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

// OpenBLAS allocates a buffer of this size for each thread that multiplies. If the system refuses
// it, OpenBLAS retries for ever. So check that the memory is there.
constexpr std::size_t buffer_bytes = (std::size_t{128} << 20) + (std::size_t{64} << 10);

void check_buffers(int number) {
  std::vector<std::unique_ptr<char[]>> buffers;
  try {
    while (static_cast<int>(buffers.size()) < number)
      buffers.push_back(std::make_unique_for_overwrite<char[]>(buffer_bytes));
  } catch (const std::bad_alloc&) {
    throw Error(
        ExitCode::out_of_memory,
        "out of memory: OpenBLAS cannot get the 128 MiB that it needs for each thread (limit "
        "of memory: ulimit -v)");
  }
}

// Computes the smallest product, so that OpenBLAS allocates the buffer of the calling thread.
void take_buffer() {
  using Sgemm =
      void(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
           const int*, const float*, const int*, const float*, float*, const int*);
  auto* sgemm = find_symbol<Sgemm>("sgemm_");
  if (sgemm == nullptr) return;
  const int n = 1;
  const float one = 1;
  float product = 0;
  sgemm("N", "N", &n, &n, &n, &one, &one, &n, &one, &n, &one, &product, &n);
}

/// The functions of the BLAS that is loaded; null if it has none.
struct BlasThreads {
  int (*get)() = nullptr;
  void (*set)(int) = nullptr;
  void (*set_long)(long) = nullptr;
  bool is_openblas = false;
};

const BlasThreads& blas_threads() {
  static const BlasThreads found = []() -> BlasThreads {
    if (auto* set = find_symbol<void(int)>("openblas_set_num_threads"))
      return {find_symbol<int()>("openblas_get_num_threads"), set, nullptr, true};
    if (auto* set = find_symbol<void(int)>("MKL_Set_Num_Threads"))
      return {find_symbol<int()>("MKL_Get_Max_Threads"), set};
    return {nullptr, nullptr, find_symbol<void(long)>("bli_thread_set_num_threads")};
  }();
  return found;
}

// Returns the version of the oneDNN that this process has loaded; empty without one.
std::string find_onednn() {
  // The struct that it returns begins with the three numbers.
  auto* get_version = find_symbol<const int*()>("dnnl_version");
  if (get_version == nullptr) return "";
  const int* const version = get_version();
  return fmt::format("{}.{}.{}", version[0], version[1], version[2]);
}

}  // namespace

CpuFeatures cpu_features() {
  CpuFeatures cpu;
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  cpu.avx2_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  cpu.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#endif
  return cpu;
}

std::optional<OpenBlas> find_openblas() {
  auto* get_core = find_symbol<char*()>("openblas_get_corename");
  auto* get_config = find_symbol<char*()>("openblas_get_config");
  if (get_core == nullptr || get_config == nullptr) return std::nullopt;
  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Haswell MAX_THREADS=64"
  const std::vector<std::string> words = split_text(get_config(), ' ');
  OpenBlas blas;
  blas.version = words.size() > 1 ? words[1] : "";
  blas.core = get_core();
  blas.dynamic_arch = std::find(words.begin(), words.end(), "DYNAMIC_ARCH") != words.end();
  return blas;
}

std::optional<std::string> better_core(const CpuFeatures& cpu, const OpenBlas& blas) {
  constexpr std::array<std::string_view, 3> avx2_cores = {"Haswell", "Zen", "Excavator"};
  constexpr std::array<std::string_view, 12> older_cores = {
      "Prescott", "Core2",  "Penryn",    "Dunnington", "Nehalem",    "Sandybridge",
      "Opteron",  "Bobcat", "Barcelona", "Bulldozer",  "Piledriver", "Steamroller"};
  const auto is_one_of = [&](const auto& cores) {
    return std::find(cores.begin(), cores.end(), blas.core) != cores.end();
  };
  if (cpu.avx512 && (is_one_of(older_cores) || is_one_of(avx2_cores))) return "SkylakeX";
  if (cpu.avx2_fma && is_one_of(older_cores)) return "Haswell";
  return std::nullopt;
}

bool breaks_signal_handlers(const std::string& onednn) {
#ifdef __x86_64__
  constexpr bool is_x86 = true;
#else
  constexpr bool is_x86 = false;
#endif
  const std::vector<std::string> parts = split_text(onednn, '.');
  if (!is_x86 || parts.size() != 3) return false;
  const int major = std::stoi(parts[0]), minor = std::stoi(parts[1]);
  return major < 3 || (major == 3 && minor < 11);
}

std::string describe(const BlasStatus& status) {
  std::string text = status.library.empty() ? "unknown" : status.library + " (not OpenBLAS)";
  if (status.blas)
    text = fmt::format("OpenBLAS {}, core {}", status.blas->version, status.blas->core);
  if (!status.advice.empty()) text += fmt::format(" ({})", status.advice);
  if (!status.onednn.empty()) text += ", oneDNN " + status.onednn;
  if (breaks_signal_handlers(status.onednn)) text += " (breaks signal handlers)";
  if (status.threads > 0) text += ", " + counted(status.threads, "thread");
  return text;
}

BlasStatus check_blas() {
  BlasStatus status{blas_library(), find_openblas(), find_onednn(), "", 0};
  if (!status.blas) return status;
  const std::optional<std::string> better = better_core(cpu_features(), *status.blas);
  if (!better) return status;
  const std::string remedy = status.blas->dynamic_arch
                                 ? fmt::format("export OPENBLAS_CORETYPE={}", *better)
                                 : "use an OpenBLAS built with DYNAMIC_ARCH=1";
  status.advice = fmt::format("kernels for {} are faster on this processor: {}", *better, remedy);
  return status;
}

int limit_blas_threads(int threads) {
  // MKL and BLIS read their variables at the first call; OpenBLAS does so when it is loaded.
  const std::string number = std::to_string(threads);
  setenv("MKL_NUM_THREADS", number.c_str(), 0);
  setenv("BLIS_NUM_THREADS", number.c_str(), 0);
  const bool is_chosen =
      std::getenv("OPENBLAS_NUM_THREADS") != nullptr || std::getenv("GOTO_NUM_THREADS") != nullptr;
  // oneDNN has the threads of OpenMP, which are those of all cores if Kokkos does not use OpenMP.
  // So may OpenBLAS.
  auto* set_openmp = find_symbol<void(int)>("omp_set_num_threads");
  if (set_openmp != nullptr && !is_chosen) set_openmp(threads);
  const BlasThreads& blas = blas_threads();
  if (!blas.is_openblas || blas.get == nullptr) return 0;
  check_buffers(1 + (is_chosen ? 0 : std::max(0, threads - blas.get())));
  if (!is_chosen) blas.set(threads);
  take_buffer();
  return blas.get();
}

OneBlasThread::OneBlasThread(bool applies) {
  if (!applies) return;
  const BlasThreads& blas = blas_threads();
  if (blas.set_long != nullptr) blas.set_long(1);
  if (blas.get == nullptr || blas.set == nullptr || blas.get() == 1) return;
  before_ = blas.get();
  blas.set(1);
}

OneBlasThread::~OneBlasThread() {
  if (before_ > 0) blas_threads().set(before_);
}

}  // namespace tessera
