// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdlib>
#include <optional>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/process/wait_limit.hpp>

namespace tessera {
namespace {

constexpr const char* timeout_variable = "TESSERA_TIMEOUT_SECONDS";
constexpr double timeout_without_variable = 300;

std::atomic<double> limit_set = -1;  // negative: none yet

std::optional<double> timeout_of(std::string_view text) {
  const std::optional<double> seconds = number_of<double>(text);
  return seconds && *seconds > 0 && *seconds <= longest_timeout_seconds ? seconds : std::nullopt;
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

}  // namespace tessera
