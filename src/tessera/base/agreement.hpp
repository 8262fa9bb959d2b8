// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job agree on how something ended.
#pragma once

#include <optional>

#include <mpi.h>

#include <tessera/base/outcome.hpp>

namespace tessera {

/// Collective over `comm`: the outcome of the lowest rank that failed, the same on every rank.
/// Its message begins with "rank N: " unless every rank failed with the same message.
/// A rank that failed waits for the others for `grace_seconds`; if some have not come by then they
/// wait for something that will never happen, and the result is empty on this rank.
/// A rank that did not fail waits as long as it takes.
std::optional<Outcome> agree_on_outcome(MPI_Comm comm, const Outcome& mine, double grace_seconds);

}  // namespace tessera
