// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include <tessera/app/commands.hpp>
#include <tessera/process/run_main.hpp>

namespace tessera {
namespace {

ExitCode run_alone(const PlanOptions& options) { return plan_command(options); }
ExitCode run_alone(const CheckpointOptions& options) { return checkpoint_command(options); }
ExitCode run_alone(const DiffOptions& options) { return diff_command(options); }

template <class Options>
Task task_for(const Options& options) {
  return SingleTask([options](Size) { return run_alone(options); });
}

Task task_for(const TrainOptions& options) {
  return ParallelTask([options](Runtime& runtime) {
    // A closed pipe must not end a run whose results also go to a file.
    std::signal(SIGPIPE, SIG_IGN);
    return run_command(runtime, options);
  });
}

Task task_for(const InfoOptions&) { return ParallelTask(info_command); }

Task task_of(const std::vector<std::string>& arguments) {
  return std::visit([](const auto& command) { return task_for(command); },
                    parse_command_line(arguments));
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) { return tessera::run_program(argc, argv, tessera::task_of); }
