// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>

#include "results/results_directory.hpp"

namespace tessera::bench {

/// Records the case that is being run if the job has to end in its middle: a rank that is stuck in
/// a collective can neither be waited for nor left behind. Each rank has one; whichever ends the
/// job writes the result.
class LastWord {
 public:
  /// Watches for the job's abort, by the communicators' watchdog for one, as long as it lives.
  explicit LastWord(const ResultsDirectory& results);
  ~LastWord();
  LastWord(const LastWord&) = delete;
  LastWord& operator=(const LastWord&) = delete;

  /// From here to end(), `result` is what is to be completed; without a status it is named only.
  /// With a time limit of the case, the job ends with exit code 4 if the end does not come in twice
  /// that time: the watchdog, which can name the ranks that are missing, comes first.
  void begin(nlohmann::json result, std::optional<double> case_seconds);
  /// What the case is doing: "warm-up".
  void enter(std::string phase);
  void end();

 private:
  void speak(ExitCode code, const std::string& reason);
  void wait(const std::stop_token& is_over, double case_seconds);

  const ResultsDirectory& results_;
  std::mutex mutex_;
  std::optional<nlohmann::json> result_;
  std::string phase_;
  std::condition_variable_any wake_;
  std::jthread deadline_;
};

/// Sets status, reason and exit code of a case that ended with this code.
void end_case(nlohmann::json& result, ExitCode code, const std::string& reason);

/// The last line of a launch, printed by the rank that ends it.
void print_result_line(const std::string& verdict, const std::string& text);

}  // namespace tessera::bench
