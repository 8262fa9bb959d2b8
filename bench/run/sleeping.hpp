// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

namespace tessera::bench {

/// Returns when every rank of `comm` has come. Ranks that wait sleep, so that those that work have
/// the machine for themselves; no watchdog finds them late. Collective over `comm`.
void sleep_until_all_arrive(MPI_Comm comm = MPI_COMM_WORLD);

}  // namespace tessera::bench
