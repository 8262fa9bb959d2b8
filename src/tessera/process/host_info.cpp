// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <sched.h>
#include <string_view>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <tessera/base/text.hpp>
#include <tessera/process/host_info.hpp>

namespace tessera {
namespace {

/// Returns the processors to which OpenMP binds threads; none without OMP_PROC_BIND.
std::vector<int> processors_of_openmp() {
  std::vector<int> processors;
#ifdef _OPENMP
  if (omp_get_proc_bind() == omp_proc_bind_false) return {};
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> ids(omp_get_place_num_procs(place));
    omp_get_place_proc_ids(place, ids.data());
    processors.insert(processors.end(), ids.begin(), ids.end());
  }
  std::sort(processors.begin(), processors.end());
#endif
  return processors;
}

std::vector<int> read_cpu_set() {
  // OpenMP binds the first thread before main() begins: the kernel reports its place only.
  if (const std::vector<int> bound = processors_of_openmp(); !bound.empty()) return bound;
  // The kernel rejects a set that is smaller than its own, and does not report its size.
  constexpr int most = 1 << 16;
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(most),
                                                             [](cpu_set_t* p) { CPU_FREE(p); });
  const std::size_t bytes = CPU_ALLOC_SIZE(most);
  std::vector<int> processors;
  if (sched_getaffinity(0, bytes, set.get()) != 0) return processors;
  for (int i = 0; i < most; ++i)
    if (CPU_ISSET_S(i, bytes, set.get())) processors.push_back(i);
  return processors;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view key = trim(std::string_view(line).substr(0, colon));
    if (key == "model name" || key == "cpu model" || key == "cpu") {
      return std::string(trim(std::string_view(line).substr(colon + 1)));
    }
  }
  return "unknown";
}

const std::vector<int>& cpu_set() {
  static const std::vector<int> processors = read_cpu_set();
  return processors;
}

}  // namespace tessera
