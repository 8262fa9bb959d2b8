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
/// An exception becomes one line "tessera: error: <message>" on stderr, which names the lowest
/// failed rank unless every rank failed with the same error. If others still wait for the failed
/// ranks after `grace_seconds`, the job is aborted.
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
