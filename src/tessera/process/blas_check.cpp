// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <memory>
#include <new>
#include <string_view>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/process/blas_check.hpp>

namespace tessera {
namespace {

// Holds the core before the restart; its presence keeps a process from restarting twice.
constexpr const char* restart_variable = "TESSERA_BLAS_CORE_WAS";
constexpr const char* core_variable = "OPENBLAS_CORETYPE";

// Builds with 64-bit integers may carry a suffix.
template <class Function>
Function* find_symbol(const char* name) {
  for (const char* suffix : {"", "64_", "_64"}) {
    const std::string full = std::string(name) + suffix;
    if (void* symbol = dlsym(RTLD_DEFAULT, full.c_str())) {
      return reinterpret_cast<Function*>(symbol);
    }
  }
  return nullptr;
}

template <std::size_t n>
bool is_one_of(std::string_view word, const std::array<std::string_view, n>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return edit_distance(word, name) == 0; });
}

std::string blas_library() {
  Dl_info info;
  void* symbol = dlsym(RTLD_DEFAULT, "sgemm_");
  if (symbol == nullptr || dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return "";
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(info.dli_fname, error);
  return error ? info.dli_fname : file.string();
}

// OpenBLAS takes a buffer of this size for each thread that multiplies. Where the system refuses
// it, it asks again for ever, so find out first.
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

// The smallest product: OpenBLAS then has the buffer of the calling thread, and keeps it.
void take_buffer() {
  using Sgemm = void(const char*, const char*, const std::int64_t*, const std::int64_t*,
                     const std::int64_t*, const float*, const float*, const std::int64_t*,
                     const float*, const std::int64_t*, const float*, float*, const std::int64_t*);
  auto* sgemm = find_symbol<Sgemm>("sgemm_");
  if (sgemm == nullptr) return;
  const std::int64_t n = 1;  // the low half is the same for a library with 32-bit integers
  const float one = 1;
  float product = 0;
  sgemm("N", "N", &n, &n, &n, &one, &one, &n, &one, &n, &one, &product, &n);
}

// Executes this program again; returns, with the reason, only if that did not work.
std::string restart(int argc, const char* const* argv) {
  std::array<char, PATH_MAX> path{};
  if (readlink("/proc/self/exe", path.data(), path.size() - 1) < 0) return std::strerror(errno);
  // Started as `ld.so program`: executing ld.so with the program's own arguments would go wrong.
  if (std::filesystem::path(path.data()).filename().string().starts_with("ld")) {
    return "the program was started through the dynamic linker";
  }
  std::vector<char*> arguments;
  for (int i = 0; i < argc; ++i) arguments.push_back(const_cast<char*>(argv[i]));
  arguments.push_back(nullptr);
  execv("/proc/self/exe", arguments.data());
  return std::strerror(errno);
}

}  // namespace

CpuFeatures cpu_features() {
  CpuFeatures cpu;
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  cpu.avx2_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  cpu.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  cpu.avx512_bf16 = cpu.avx512 && __builtin_cpu_supports("avx512bf16");
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

bool version_at_least(const std::string& a, const std::string& b) {
  const auto numbers = [](const std::string& version) {
    std::array<int, 3> n{};
    static_cast<void>(std::sscanf(version.c_str(), "%d.%d.%d", &n[0], &n[1], &n[2]));
    return n;
  };
  return numbers(a) >= numbers(b);
}

std::optional<std::string> better_core(const CpuFeatures& cpu, const OpenBlas& blas) {
  constexpr std::array<std::string_view, 3> avx2_cores = {"Haswell", "Zen", "Excavator"};
  constexpr std::array<std::string_view, 20> older_cores = {
      "Katmai",     "Coppermine",    "Northwood",  "Prescott", "Banias",
      "Core2",      "Penryn",        "Dunnington", "Nehalem",  "Athlon",
      "Opteron",    "Opteron(SSE3)", "Barcelona",  "Bobcat",   "Bulldozer",
      "Piledriver", "Steamroller",   "Nano",       "Atom",     "Sandybridge"};
  const bool older = is_one_of(blas.core, older_cores);
  if (cpu.avx512 && (older || is_one_of(blas.core, avx2_cores))) {
    const bool knows_cooperlake = version_at_least(blas.version, "0.3.11");
    return cpu.avx512_bf16 && knows_cooperlake ? "Cooperlake" : "SkylakeX";
  }
  if (cpu.avx2_fma && older) return "Haswell";
  return std::nullopt;
}

std::string describe(const BlasStatus& status) {
  if (!status.blas) {
    return status.library.empty() ? "unknown" : status.library + " (not OpenBLAS)";
  }
  std::string text = fmt::format("OpenBLAS {}, core {}", status.blas->version, status.blas->core);
  if (status.was) text += fmt::format(" (was {}: corrected)", *status.was);
  if (!status.remark.empty()) text += fmt::format(" ({})", status.remark);
  if (status.threads > 0) text += ", " + counted(status.threads, "thread");
  return text;
}

int limit_blas_threads(int threads) {
  // MKL and BLIS read their variables at the first call, OpenBLAS when it is loaded.
  const std::string number = std::to_string(threads);
  setenv("MKL_NUM_THREADS", number.c_str(), 0);
  setenv("BLIS_NUM_THREADS", number.c_str(), 0);
  auto* set_threads = find_symbol<void(int)>("openblas_set_num_threads");
  auto* get_threads = find_symbol<int()>("openblas_get_num_threads");
  const bool is_chosen =
      std::getenv("OPENBLAS_NUM_THREADS") != nullptr || std::getenv("GOTO_NUM_THREADS") != nullptr;
  const bool sets = set_threads != nullptr && !is_chosen;
  const int before = get_threads != nullptr ? get_threads() : 0;
  if (get_threads != nullptr) check_buffers(1 + (sets ? std::max(0, threads - before) : 0));
  if (sets) set_threads(threads);
  if (get_threads != nullptr) take_buffer();
  return get_threads != nullptr ? get_threads() : 0;
}

BlasStatus check_blas(int argc, const char* const* argv, bool may_restart) {
  BlasStatus status{blas_library(), find_openblas(), {}, "", 0};
  if (!status.blas) return status;

  const char* chosen = std::getenv(core_variable);
  if (const char* was = std::getenv(restart_variable)) {
    const std::string asked = chosen != nullptr ? chosen : "";
    if (status.blas->core != was) {
      status.was = was;
    } else {
      status.remark = fmt::format("{}={} had no effect", core_variable, asked);
    }
    return status;
  }
  const std::optional<std::string> better = better_core(cpu_features(), *status.blas);
  if (!better) return status;
  if (chosen != nullptr) {
    status.remark = fmt::format("{} is set by the user, but {} suits this processor better",
                                core_variable, *better);
    return status;
  }
  std::string reason = "the process has already started";
  if (!status.blas->dynamic_arch) {
    reason = "the library was built for one core type";
  } else if (may_restart) {
    setenv(core_variable, better->c_str(), 1);
    setenv(restart_variable, status.blas->core.c_str(), 1);
    reason = restart(argc, argv);
    unsetenv(core_variable);
    unsetenv(restart_variable);
  }
  status.remark =
      fmt::format("{} suits this processor better, but could not be selected: {}", *better, reason);
  return status;
}

}  // namespace tessera
