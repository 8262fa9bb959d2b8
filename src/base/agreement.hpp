// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job agree on how something ended.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include <mpi.h>

#include <tessera/base/error.hpp>

namespace tessera {

/// How a piece of the program ended: an exit code, and the error message if there is one.
struct Outcome {
  ExitCode code = ExitCode::ok;
  std::string message;
  bool failed() const { return code != ExitCode::ok; }
};

/// The outcome that the exception being handled stands for. Call it in a catch block.
Outcome describe_current_exception();

/// Collective over `comm`: the outcome of the lowest rank that failed, the same on every rank.
/// Its message begins with "rank N: " unless every rank failed with the same message.
/// A rank that failed waits for the others for `grace_seconds`; if some have not come by then they
/// wait for something that will never happen, and the result is empty on this rank.
/// A rank that did not fail waits as long as it takes.
std::optional<Outcome> agree_on_outcome(MPI_Comm comm, const Outcome& mine, double grace_seconds);

}  // namespace tessera
