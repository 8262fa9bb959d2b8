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
/// An exception becomes one line "tessera: error: <message>" on stderr. All ranks agree on how they
/// end:
/// - If every rank failed with the same error, such as bad input, the line is its message.
/// - If some ranks failed and the others ended, the line also names the lowest failed rank.
/// - If some ranks failed and others still wait for them after `grace_seconds`, the line names the
///   rank, and the job is aborted.
/// In the first two cases MPI is finalized first.
int run_main(int& argc, char**& argv, const std::function<ExitCode(Runtime&)>& body,
             double grace_seconds = 10);

/// A task for one process, without MPI and without a device. Its argument is the number of
/// processes that the launcher started.
using SingleTask = std::function<ExitCode(Size ranks)>;
/// A task for all ranks together.
using ParallelTask = std::function<ExitCode(Runtime&)>;
using Task = std::variant<SingleTask, ParallelTask>;

/// The text that --help or --version asks for.
struct ShowText {
  std::string text;
};
Task task_for(const ShowText& show);

/// The body of main. `parse` turns the arguments after the program's name into a task, or throws
/// Error. Returns the exit code of the process. One process reports an error, in one line. It is an
/// error if ranks have different arguments. A write beyond the limit of `ulimit -f` fails instead
/// of ending the process.
int run_program(int argc, char** argv,
                const std::function<Task(const std::vector<std::string>&)>& parse);

}  // namespace tessera
