// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job agree on how something ended.
#pragma once

#include <limits>
#include <optional>

#include <mpi.h>

#include <tessera/base/site.hpp>
#include <tessera/process/outcome.hpp>

namespace tessera {

/// How a group of ranks ended: the outcome of the lowest rank that failed, if any did.
struct FirstFailure {
  Outcome outcome{};
  int rank = 0;
  bool everywhere = true;  ///< every rank ended like this one
};

inline constexpr double no_time_limit = std::numeric_limits<double>::infinity();

/// Collective over `comm`; the result is the same on every rank. A rank that failed waits for the
/// others for `grace_seconds`; if some have not come by then they wait for something that will
/// never happen, and the result is empty on this rank. A rank that did not fail waits as long as it
/// takes.
std::optional<FirstFailure> first_failure(MPI_Comm comm, const Outcome& mine,
                                          double grace_seconds = no_time_limit,
                                          const Site& site = Site::current());

/// The outcome alone. Its message begins with "rank N: " unless every rank failed with the same
/// one.
std::optional<Outcome> agree_on_outcome(MPI_Comm comm, const Outcome& mine, double grace_seconds);

}  // namespace tessera
