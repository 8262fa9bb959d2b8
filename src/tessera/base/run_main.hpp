// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <tessera/base/runtime.hpp>

namespace tessera {

/// Runs `body` inside a Runtime and returns the exit code of the process, the same on every rank.
///
/// An exception becomes "tessera: error: <message>" on stderr. How ranks end is agreed by all of
/// them, so nobody has to mark an error as one of all ranks or of one:
/// - every rank failed alike (bad input): the plain message, once;
/// - some failed and the others came to their end: the message with its rank, once;
/// - some failed and others deadlock waiting for them: the message with its rank, and after
///   `grace_seconds` the whole job is aborted.
/// In the first two cases MPI is finalized first.
int run_main(int& argc, char**& argv, const std::function<ExitCode(Runtime&)>& body,
             const RuntimeOptions& options = {}, double grace_seconds = 10);

}  // namespace tessera
