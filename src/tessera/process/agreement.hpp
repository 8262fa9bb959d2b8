// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include <mpi.h>

#include <tessera/base/site.hpp>
#include <tessera/process/outcome.hpp>

namespace tessera {

/// The outcome of the lowest rank that failed, if any rank did.
struct FirstFailure {
  Outcome outcome;
  Outcome named;  ///< its message begins with "rank N: " unless every rank has the same one
};

inline constexpr double no_time_limit = std::numeric_limits<double>::infinity();

/// Collective over `comm`; returns the same on every rank. A rank that failed waits for the others
/// for `grace_seconds`. If some have not called this by then, they probably wait for a message of
/// the failed rank, so it reports its error and ends the job.
FirstFailure first_failure(MPI_Comm comm, const Outcome& mine, double grace_seconds = no_time_limit,
                           const Site& site = Site::current());

}  // namespace tessera
