// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/process/launch.hpp>

namespace tessera {

/// Returns whether OpenMP's choice how long threads spin should be replaced: the process has
/// several cores, OMP_NUM_THREADS is not 1, and the user has set no variable that says how threads
/// wait.
bool should_limit_spins(const Environment& environment, int cores);

/// Starts this program again with GOMP_SPINCOUNT, so that threads of OpenMP that wait spin for
/// 0.1 to 0.2 ms before they sleep. An OpenMP runtime reads the variable when it is loaded, so call
/// this before MPI starts. Returns if should_limit_spins() says no or the system refuses.
///
/// GCC's runtime spins for many milliseconds. If another process is busy on a core, the thread that
/// lost this core arrives late at each of a step's hundreds of barriers, and the threads that spin
/// there keep it from their cores.
void limit_spins(char** argv);

}  // namespace tessera
