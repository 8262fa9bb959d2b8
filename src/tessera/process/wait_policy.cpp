// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <unistd.h>

#include <Kokkos_Macros.hpp>

#include <tessera/process/threads.hpp>
#include <tessera/process/wait_policy.hpp>

namespace tessera {
namespace {

#ifdef KOKKOS_ENABLE_OPENMP
constexpr bool has_openmp = true;
#else
constexpr bool has_openmp = false;
#endif

// With the last ones, OpenMP has bound this thread to its place, which a new start would inherit.
constexpr std::array users_choices = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT",   "KMP_BLOCKTIME",
                                      "KMP_LIBRARY",     "OMP_PROC_BIND",    "OMP_PLACES",
                                      "KMP_AFFINITY",    "GOMP_CPU_AFFINITY"};

}  // namespace

bool should_limit_spins(const Environment& environment, int cores) {
  const bool is_chosen =
      std::any_of(users_choices.begin(), users_choices.end(),
                  [&](const char* name) { return environment(name) != nullptr; });
  const char* threads = environment("OMP_NUM_THREADS");
  const bool has_one_thread = threads != nullptr && std::string_view(threads) == "1";
  return has_openmp && cores > 1 && !is_chosen && !has_one_thread;
}

void limit_spins(char** argv) {
  if (!should_limit_spins(std::getenv, static_cast<int>(own_cores().size()))) return;
  setenv("GOMP_SPINCOUNT", "4000", 0);
  execv("/proc/self/exe", argv);
}

}  // namespace tessera
