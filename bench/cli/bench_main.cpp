// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdlib>
#include <optional>
#include <variant>

#include <tessera/base/launch.hpp>
#include <tessera/base/log.hpp>
#include <tessera/base/run_main.hpp>
#include <tessera/base/standard_streams.hpp>

#include "cli/bench_command_line.hpp"
#include "results/compare.hpp"
#include "run/console.hpp"
#include "run/driver.hpp"

namespace {

using namespace tessera;
using namespace tessera::bench;

/// What needs neither MPI nor a device.
ExitCode answer_alone(const Command& command, Size ranks) {
  try {
    if (const auto* list = std::get_if<ListOptions>(&command)) {
      const Study study = load_study(list->source);
      print_output(case_list(study, make_cases(study)));
    } else if (const auto* compare = std::get_if<CompareOptions>(&command)) {
      print_output(compare_results(compare->before, compare->after));
    } else if (const auto* run = std::get_if<RunOptions>(&command)) {
      return show_selection(*run, ranks);
    } else {
      print_output(std::get<ShowText>(command).text);
    }
    return ExitCode::ok;
  } catch (...) {
    const Outcome outcome = describe_current_exception();
    log_error(outcome.message);
    return outcome.code;
  }
}

bool needs_mpi(const Command& command) {
  const auto* run = std::get_if<RunOptions>(&command);
  return run != nullptr && !run->dry_run;
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  const std::optional<Launch> launch = detect_launch([](const char* n) { return std::getenv(n); });
  Command command;
  try {
    command = parse_command_line({argv + 1, argv + argc});
  } catch (const Error& error) {
    if (!launch || launch->size == 1) {
      log_error(error.what());
      return static_cast<int>(error.code());
    }
    // One process must speak, and none may exit before it has.
    return run_main(argc, argv, [&](Runtime&) -> ExitCode { throw error; });
  }
  if (!needs_mpi(command)) {
    // Every process of a launch would answer the same.
    if (launch && launch->rank > 0) return static_cast<int>(ExitCode::ok);
    return static_cast<int>(answer_alone(command, launch ? launch->size : 1));
  }
  // A reader that leaves must not end a study whose results also go to files.
  std::signal(SIGPIPE, SIG_IGN);
  return run_main(argc, argv, [&](Runtime& runtime) {
    return run_study(runtime, std::get<RunOptions>(command));
  });
}
