// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <variant>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/launch.hpp>
#include <tessera/base/log.hpp>
#include <tessera/base/runtime.hpp>
#include <tessera/train/command_line.hpp>
#include <tessera/train/info_command.hpp>
#include <tessera/train/plan_command.hpp>
#include <tessera/train/run_command.hpp>

namespace {

using namespace tessera;

/// Runs the command; starts the runtime only for those that need it.
int execute(const Command& command, const std::optional<Launch>& launch,
            std::optional<Runtime>& runtime, int& argc, char**& argv) {
  const bool alone =
      std::holds_alternative<ShowText>(command) || std::holds_alternative<PlanOptions>(command);
  // The answer is the same from every process, and no other process waits for it.
  if (alone && launch && launch->rank > 0) return static_cast<int>(ExitCode::ok);
  if (const auto* show = std::get_if<ShowText>(&command)) {
    std::fputs(show->text.c_str(), stdout);
    return static_cast<int>(ExitCode::ok);
  }
  if (const auto* plan = std::get_if<PlanOptions>(&command)) return plan_command(*plan);
  runtime.emplace(argc, argv);
  if (const auto* run = std::get_if<RunOptions>(&command)) return run_command(*runtime, *run);
  return info_command(*runtime);
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Launch> launch = detect_launch([](const char* n) { return std::getenv(n); });
  std::optional<Runtime> runtime;
  try {
    Command command;
    try {
      command = parse_command_line({argv + 1, argv + argc});
    } catch (const Error&) {
      // One of several processes must speak, and none may exit before it has: launchers kill the
      // others when one fails.
      if (launch && launch->size > 1) runtime.emplace(argc, argv);
      throw;
    }
    return execute(command, launch, runtime, argc, argv);
  } catch (const Error& error) {
    // All ranks have agreed on an error, except that one that concerns messages cannot be.
    const bool agreed = error.code() != ExitCode::communication;
    if (!runtime || !agreed || runtime->world_rank() == 0) log_error(error.what());
    if (runtime && !agreed) runtime->abort(error.code());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
    const ExitCode code = memory ? ExitCode::out_of_memory : ExitCode::wrong_result;
    log_error(runtime ? fmt::format("rank {}: {}", runtime->world_rank(), error.what())
                      : error.what());
    if (runtime) runtime->abort(code);
    return static_cast<int>(code);
  }
}
