// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <memory>
#include <sched.h>

#include <Kokkos_Macros.hpp>
#ifdef KOKKOS_ENABLE_OPENMP
#include <omp.h>
#endif

#include <tessera/process/host_info.hpp>
#include <tessera/process/thread_binding.hpp>
#include <tessera/process/threads.hpp>

namespace tessera {
namespace {

constexpr std::array users_choices = {"OMP_PROC_BIND", "OMP_PLACES", "KMP_AFFINITY",
                                      "GOMP_CPU_AFFINITY"};

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

bool should_bind_threads(const Environment& environment, int local_rank,
                         std::span<const std::vector<int>> cores, int threads) {
  const bool is_chosen =
      std::any_of(users_choices.begin(), users_choices.end(),
                  [&](const char* name) { return environment(name) != nullptr; });
  const bool has_all_cores =
      threads == std::ssize(cores[local_rank]) && threads == threads_of_rank(local_rank, cores);
  return threads > 1 && has_all_cores && !is_chosen;
}

ThreadBinding::ThreadBinding() {
#ifdef KOKKOS_ENABLE_OPENMP
  const std::vector<std::vector<int>> places = own_places();
  if (places.size() < 2) return;
  processors_ = cpu_set();
  threads_ = static_cast<int>(places.size());
#pragma omp parallel num_threads(threads_)
  run_on(places[omp_get_thread_num()]);
#endif
}

ThreadBinding::~ThreadBinding() {
#ifdef KOKKOS_ENABLE_OPENMP
  if (processors_.empty()) return;
#pragma omp parallel num_threads(threads_)
  run_on(processors_);
#endif
}

}  // namespace tessera
