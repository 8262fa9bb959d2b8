// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <mpi.h>

#include <tessera/comm/communicator.hpp>
#include <tessera/comm/detail/mpi_handle.hpp>
#include <tessera/process/outcome.hpp>

#include "study/study.hpp"

namespace tessera::bench {

/// The ranks of a case.
struct Group {
  Communicator ranks;
  MpiHandle raw;  ///< to agree on outcomes
};

/// Splits a communicator without a watchdog. The job ends if a rank does not arrive in time.
/// Collective over `parent`.
MpiHandle split_raw(MPI_Comm parent, int color, int key, const Site& site = Site::current());

/// Runs `work` on the ranks of a group and returns its outcome, the same on all of them. Ends the
/// job if the ranks cannot agree, because others wait in a collective for this rank, which has
/// failed. Collective over the group.
Outcome run_on_group(const Group& group, const Limits& limits, const std::function<void()>& work);

/// Returns when every rank of `comm` has arrived. Waiting ranks sleep and leave the processors to
/// ranks that work. The job ends if the wait takes longer than any case may. Collective over
/// `comm`.
void sleep_until_all_arrive(const Limits& limits, MPI_Comm comm = MPI_COMM_WORLD,
                            const Site& site = Site::current());

}  // namespace tessera::bench
