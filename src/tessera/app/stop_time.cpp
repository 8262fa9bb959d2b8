// SPDX-License-Identifier: Apache-2.0
#include <ctime>
#include <iomanip>
#include <sstream>

#include <tessera/app/stop_time.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>

namespace tessera {
namespace {

/// Returns none unless this time exists in the local calendar and clock. The C library reads
/// February 30 as March 2, so this compares the text with the result as text.
std::optional<std::int64_t> local_time_in(const std::string& text) {
  const char* const format = "%Y-%m-%dT%H:%M:%S";
  std::tm time{};
  time.tm_isdst = -1;  // mktime() finds out whether summer time applies
  std::istringstream(text) >> std::get_time(&time, format);
  const std::time_t seconds = std::mktime(&time);
  std::ostringstream again;
  again << std::put_time(&time, format);
  return again.str() == text ? std::optional<std::int64_t>(seconds) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> time_to_stop(const std::string& until, const Config& config) {
  if (until.empty()) return std::nullopt;
  if (!config.checkpoint.enabled())
    throw ConfigError("--until", until, "needs checkpoint.directory");
  if (const auto seconds = number_of<std::int64_t>(until)) return seconds;
  if (const auto seconds = local_time_in(until)) return seconds;
  throw ConfigError("--until", until,
                    "must be a local date and time that exists, like 2026-11-24T06:00:00, or "
                    "seconds since 1970");
}

std::int64_t seconds_now() { return std::time(nullptr); }

}  // namespace tessera
