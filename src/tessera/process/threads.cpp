// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <sched.h>
#include <set>

#include <Kokkos_Macros.hpp>
#include <fmt/format.h>
#ifdef KOKKOS_ENABLE_OPENMP
#include <omp.h>
#endif

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/process/host_info.hpp>
#include <tessera/process/threads.hpp>

namespace tessera {
namespace {

bool share_a_core(const std::vector<int>& a, const std::vector<int>& b) {
  return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
}

std::string siblings_on_linux(int processor) {
  std::ifstream file(
      fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", processor));
  std::string text;
  std::getline(file, text);
  return text;
}

#ifdef KOKKOS_ENABLE_OPENMP
/// Lets the calling thread run on these processors only. If the system refuses, nothing changes.
void run_on(std::span<const int> processors) {
  const int most = *std::max_element(processors.begin(), processors.end());
  const std::size_t bytes = CPU_ALLOC_SIZE(most + 1);
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(most + 1),
                                                             [](cpu_set_t* p) { CPU_FREE(p); });
  CPU_ZERO_S(bytes, set.get());
  for (const int processor : processors) CPU_SET_S(processor, bytes, set.get());
  sched_setaffinity(0, bytes, set.get());
}
#endif

}  // namespace

std::map<int, std::vector<int>> cores_of(std::span<const int> processors,
                                         const std::function<std::string(int)>& siblings) {
  std::map<int, std::vector<int>> cores;
  for (const int processor : processors) {
    int lowest = processor;
    const std::string all = siblings(processor);
    std::from_chars(all.data(), all.data() + all.size(), lowest);
    cores[lowest].push_back(processor);
  }
  return cores;
}

std::map<int, std::vector<int>> own_cores() { return cores_of(cpu_set(), siblings_on_linux); }

int threads_of_rank(int local_rank, std::span<const std::vector<int>> cores) {
  const std::vector<int>& mine = cores[local_rank];
  const auto sharers = std::count_if(cores.begin(), cores.end(),
                                     [&](const auto& other) { return share_a_core(mine, other); });
  return std::max(1, static_cast<int>(mine.size()) / std::max(1, static_cast<int>(sharers)));
}

std::string shared_cores_warning(std::span<const std::vector<int>> cores, int threads) {
  std::set<int> all;
  for (const std::vector<int>& of_rank : cores) all.insert(of_rank.begin(), of_rank.end());
  if (all.empty() || threads <= std::ssize(all)) return "";
  return fmt::format(
      "{} of {} on this node share {}, so times mean little; TESSERA_ALLOW_SHARED_CORES=1 hides "
      "this line",
      counted(threads, "thread"), counted(std::ssize(cores), "rank"),
      counted(std::ssize(all), "core"));
}

std::optional<AskedNumber> asked_threads(const std::vector<std::string>& arguments,
                                         const Environment& environment) {
  if (const auto asked = asked_number(arguments, environment, "num-threads")) return asked;
  AskedNumber asked{"OMP_NUM_THREADS"};
  const char* value = environment(asked.name.c_str());
  if (value == nullptr) return std::nullopt;
  std::from_chars(value, value + std::strlen(value), asked.number);
  if (asked.number < 1) return std::nullopt;
  return asked;
}

void check_threads(const AskedNumber& asked, std::span<const int> processors,
                   bool kokkos_has_threads) {
  const int available = static_cast<int>(processors.size());
  // OMP_NUM_THREADS may be meant for other libraries.
  if (!kokkos_has_threads && asked.number > 1 && asked.name != "OMP_NUM_THREADS")
    throw ConfigError(
        asked.name, std::to_string(asked.number),
        "this Kokkos was built without OpenMP, so each rank runs 1 thread; build one with OpenMP: "
        "scripts/kokkos.sh --backend openmp");
  if (!kokkos_has_threads || available == 0 || asked.number <= available) return;
  throw ConfigError(
      asked.name, std::to_string(asked.number),
      "each rank may run on only {} ({}); ask for at most {} threads, or give ranks more "
      "(mpirun --map-by slot:PE={} --bind-to core; srun --cpus-per-task={})",
      counted(available, "processor"), number_ranges(processors), available, asked.number,
      asked.number);
}

bool should_bind_threads(const Environment& environment, int local_rank,
                         std::span<const std::vector<int>> cores, int threads) {
  for (const char* chosen : {"OMP_PROC_BIND", "OMP_PLACES", "KMP_AFFINITY", "GOMP_CPU_AFFINITY"})
    if (environment(chosen) != nullptr) return false;
  return threads > 1 && threads == std::ssize(cores[local_rank]) &&
         threads == threads_of_rank(local_rank, cores);
}

void bind_threads() {
#ifdef KOKKOS_ENABLE_OPENMP
  std::vector<std::vector<int>> places;
  for (const auto& [core, processors] : own_cores()) places.push_back(processors);
  const int threads = static_cast<int>(places.size());
#pragma omp parallel num_threads(threads)
  run_on(places[omp_get_thread_num()]);
#endif
}

}  // namespace tessera
