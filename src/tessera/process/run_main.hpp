// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include <tessera/base/types.hpp>
#include <tessera/process/runtime.hpp>

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
             double grace_seconds = 10);

/// What needs neither MPI nor a device, and is done by one process. Given the number of processes
/// that the launcher started.
using SingleTask = std::function<ExitCode(Size ranks)>;
/// What all ranks do together.
using ParallelTask = std::function<ExitCode(Runtime&)>;
using Task = std::variant<SingleTask, ParallelTask>;

/// What --help and --version ask for.
struct ShowText {
  std::string text;
};
Task task_for(const ShowText& show);

/// The body of main: `parse` makes a task of the arguments after the program's name, or throws
/// Error; the result is the exit code of the process. Errors are one line from one process.
int run_program(int argc, char** argv,
                const std::function<Task(const std::vector<std::string>&)>& parse);

}  // namespace tessera
