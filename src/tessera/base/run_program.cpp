// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <optional>

#include <tessera/base/launch.hpp>
#include <tessera/base/log.hpp>
#include <tessera/base/outcome.hpp>
#include <tessera/base/run_main.hpp>
#include <tessera/base/run_program.hpp>
#include <tessera/base/standard_streams.hpp>

namespace tessera {
namespace {

int report(const Outcome& outcome) {
  if (outcome.failed() && !outcome.message.empty()) log_error(outcome.message);
  return static_cast<int>(outcome.code);
}

}  // namespace

Task task_for(const ShowText& show) {
  return SingleTask([show](Size) {
    print_output(show.text);
    return ExitCode::ok;
  });
}

int run_program(int argc, char** argv,
                const std::function<Task(const std::vector<std::string>&)>& parse) {
  occupy_standard_streams();
  const std::optional<Launch> launch = detect_launch([](const char* n) { return std::getenv(n); });
  const int ranks = launch ? launch->size : 1;
  Task task;
  const Outcome parsed = outcome_of([&] { task = parse({argv + 1, argv + argc}); });
  if (parsed.failed()) {
    if (ranks == 1) return report(parsed);
    // One process must speak, and none may exit before it has: launchers kill the others of a
    // process that fails. The runtime brings them together.
    task = [&](Runtime&) -> ExitCode { throw Error(parsed.code, parsed.message); };
  }
  if (const auto* single = std::get_if<SingleTask>(&task)) {
    // Every process of a launch would answer the same.
    if (launch && launch->rank > 0) return static_cast<int>(ExitCode::ok);
    return report(outcome_of([&] { return (*single)(ranks); }));
  }
  return run_main(argc, argv, std::get<ParallelTask>(task));
}

}  // namespace tessera
