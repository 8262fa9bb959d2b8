// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdlib>
#include <optional>
#include <variant>

#include <tessera/app/command_line.hpp>
#include <tessera/app/info_command.hpp>
#include <tessera/app/inspect_command.hpp>
#include <tessera/app/plan_command.hpp>
#include <tessera/app/run_command.hpp>
#include <tessera/base/agreement.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/launch.hpp>
#include <tessera/base/log.hpp>
#include <tessera/base/outcome.hpp>
#include <tessera/base/run_main.hpp>
#include <tessera/base/standard_streams.hpp>

namespace {

using namespace tessera;

/// What needs neither MPI nor a device.
ExitCode answer_alone(const Command& command) {
  try {
    if (const auto* plan = std::get_if<PlanOptions>(&command)) return plan_command(*plan);
    print_output(std::get<ShowText>(command).text);
    return ExitCode::ok;
  } catch (...) {
    const Outcome outcome = describe_current_exception();
    log_error(outcome.message);
    return outcome.code;
  }
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
    // One process must speak, and none may exit before it has: launchers kill the others of a
    // process that fails. The runtime brings them together.
    return run_main(argc, argv, [&](Runtime&) -> ExitCode { throw error; });
  }
  if (std::holds_alternative<ShowText>(command) || std::holds_alternative<PlanOptions>(command)) {
    // Every process of a launch would answer the same.
    if (launch && launch->rank > 0) return static_cast<int>(ExitCode::ok);
    return static_cast<int>(answer_alone(command));
  }
  // A reader that leaves must not end a run whose results also go to a file.
  if (std::holds_alternative<RunOptions>(command)) std::signal(SIGPIPE, SIG_IGN);
  return run_main(argc, argv, [&](Runtime& runtime) {
    if (const auto* run = std::get_if<RunOptions>(&command)) return run_command(runtime, *run);
    if (const auto* inspect = std::get_if<InspectOptions>(&command))
      return inspect_command(runtime, *inspect);
    return info_command(runtime);
  });
}
