// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <mpi.h>

#include <tessera/comm/communicator.hpp>
#include <tessera/comm/detail/mpi_handle.hpp>
#include <tessera/process/outcome.hpp>

#include "study/study.hpp"

namespace tessera::bench {

/// Ranks of the job that work together, with the backend that they ask for.
struct Group {
  Communicator ranks;
  MpiHandle raw;  ///< to agree with each other on how something has ended
};

/// Communicators without a watchdog: the job ends when a rank does not come in time. Collective
/// over `parent`.
MpiHandle split_raw(MPI_Comm parent, int color, int key, const Site& site = Site::current());

/// How `work` ended on the ranks of a group, the same on all of them; ends the job if that cannot
/// be found out, because others wait for this rank in a collective that will never end. Collective
/// over the group.
Outcome run_on_group(const Group& group, const Limits& limits, const std::function<void()>& work);

/// Returns when every rank of `comm` has come. Ranks that wait sleep, so that those that work have
/// the machine for themselves. No watchdog finds them late: the job ends when the wait is longer
/// than any case may take. Collective over `comm`.
void sleep_until_all_arrive(const Limits& limits, MPI_Comm comm = MPI_COMM_WORLD,
                            const Site& site = Site::current());

}  // namespace tessera::bench
