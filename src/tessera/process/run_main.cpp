// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <thread>

#include <tessera/process/launch.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/run_main.hpp>
#include <tessera/process/standard_streams.hpp>

namespace tessera {
namespace {

/// Rank 0 prints the message. Before MPI has started, every process counts as rank 0.
int report(const Outcome& outcome) {
  if (log_rank() == 0 && !outcome.message.empty()) log_error(outcome.message);
  return static_cast<int>(outcome.code);
}

}  // namespace

int run_main(int& argc, char**& argv, const std::function<ExitCode(Runtime&)>& body,
             double grace_seconds) {
  try {
    Runtime runtime(argc, argv);
    const Outcome mine = outcome_of([&] { return body(runtime); });
    // Staggered, so that usually one rank reports before its abort ends the others.
    const double stagger = 0.02 * std::min(runtime.world_rank(), 100);
    return report(runtime.agree(mine, grace_seconds + stagger));
  } catch (...) {
    // The runtime could not start. It throws the same Error on every rank.
    const int code = report(describe_current_exception());
    // Launchers end the other processes once one has failed, so rank 0 must report first.
    if (log_rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return code;
  }
}

Task task_for(const ShowText& show) {
  return SingleTask([show](Size) {
    print_output(show.text);
    return ExitCode::ok;
  });
}

int run_program(int argc, char** argv,
                const std::function<Task(const std::vector<std::string>&)>& parse) {
  std::signal(SIGXFSZ, SIG_IGN);
  const std::optional<Launch> launch = detect_launch(std::getenv);
  const int ranks = launch ? launch->size : 1;
  Task task;
  const Outcome parsed = outcome_of([&] { task = parse({argv + 1, argv + argc}); });
  if (parsed.failed()) {
    if (ranks == 1) return report(parsed);
    // One process must report before any other exits, because launchers end the other processes
    // once one has failed. The runtime synchronizes them.
    task = [&](Runtime&) -> ExitCode { throw Error(parsed.code, parsed.message); };
  }
  if (const auto* single = std::get_if<SingleTask>(&task)) {
    // Every process of a launch would print the same.
    if (launch && launch->rank > 0) return static_cast<int>(ExitCode::ok);
    return report(outcome_of([&] { return (*single)(ranks); }));
  }
  return run_main(argc, argv, [&](Runtime& runtime) {
    runtime.check_same_arguments();
    return std::get<ParallelTask>(task)(runtime);
  });
}

}  // namespace tessera
