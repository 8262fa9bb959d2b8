// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/sleep.hpp>
#include <tessera/base/text.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/runtime.hpp>
#include <tessera/process/wait_limit.hpp>

namespace tessera {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr const char* timeout_variable = "TESSERA_TIMEOUT_SECONDS";
constexpr double timeout_without_variable = 300;
constexpr auto look_interval = 50ms;
constexpr Seconds turn{1.5}, last_turn{6};  // launchers give ranks about a second to end
constexpr auto longest_step = 1s;           // after a longer one the process was suspended

std::atomic<double> limit_set = -1;  // negative: none yet
std::atomic<bool> reported = false;  // one line per process

std::optional<double> timeout_of(std::string_view text) {
  const std::optional<double> seconds = number_of<double>(text);
  return seconds && *seconds > 0 && *seconds <= longest_timeout_seconds ? seconds : std::nullopt;
}

/// Lower ranks report first; the others have usually been ended before their turn. Before MPI has
/// started, the rank is the one that the launcher gave.
void watch(const std::stop_token& stop, const std::string& what, Seconds limit, const Site& site) {
  const Seconds last_call = limit + std::min<Seconds>(log_rank() * turn, last_turn);
  Seconds waited{0};
  Clock::time_point last_look = Clock::now();
  while (waited < last_call) {
    if (sleep_until_stop(stop, look_interval)) return;
    const Clock::time_point now = Clock::now();
    waited += std::min<Seconds>(now - std::exchange(last_look, now), longest_step);
  }
  if (reported.exchange(true)) return;
  const std::string message = fmt::format("rank {}: {} at {} has waited {:.1f} s for other ranks",
                                          log_rank(), what, to_string(site), waited.count());
  log_from_this_rank(message);
  abort_job(ExitCode::communication, message);
}

}  // namespace

double default_timeout_seconds() {
  const char* text = std::getenv(timeout_variable);
  return timeout_of(text != nullptr ? text : "").value_or(timeout_without_variable);
}

void check_timeout_variable() {
  const char* text = std::getenv(timeout_variable);
  if (text != nullptr && !timeout_of(text))
    throw ConfigError(timeout_variable, text, "must be more than 0 and at most 1e9 seconds");
}

double timeout_seconds() {
  const double seconds = limit_set;
  return seconds >= 0 ? seconds : default_timeout_seconds();
}

void set_timeout_seconds(double seconds) { limit_set = seconds; }

WaitLimit::WaitLimit(const std::string& what, double seconds, const Site& site) {
  if (seconds <= 0) return;
  try {
    watcher_ = std::jthread([what, limit = Seconds(seconds), site](const std::stop_token& stop) {
      watch(stop, what, limit, site);
    });
  } catch (const std::system_error&) {
    // Without a thread there is no limit.
  }
}

}  // namespace tessera
