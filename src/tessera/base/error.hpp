// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tessera {

/// The exit code of a process, the same on every rank.
enum class ExitCode : int {
  ok = 0,
  usage = 1,         ///< bad file, flag, mesh or shape; found before training
  wrong_result = 2,  ///< diverged, or measured differs from planned
  out_of_memory = 3,
  timeout = 4,
  communication = 5,  ///< mismatched, stalled or failed message passing
  stopped = 6,        ///< ended early on request, with a checkpoint to resume from
  skipped = 77,
};

/// An error with the exit code of the process. The message is one line.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  template <class... Args>
  Error(ExitCode code, fmt::format_string<Args...> message, Args&&... args)
      : Error(code, fmt::format(message, std::forward<Args>(args)...)) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// Returns the text, or its begin, end and length if it is longer than `most` bytes.
std::string excerpt(std::string_view text, std::size_t most = 80);

/// Bad input, with exit code 1. The message is "key = value: allowed". Long keys and values are
/// shortened. `allowed` is a phrase such as "must be positive" or "must be one of mean, sum".
class ConfigError : public Error {
 public:
  ConfigError(std::string_view key, std::string_view value, std::string_view allowed)
      : Error(ExitCode::usage, "{} = {}: {}", excerpt(key), excerpt(value),
              excerpt(allowed, most_allowed)),
        allowed_(allowed) {}
  template <class... Args>
  ConfigError(std::string_view key, std::string_view value, fmt::format_string<Args...> allowed,
              Args&&... args)
      : ConfigError(key, value,
                    std::string_view(fmt::format(allowed, std::forward<Args>(args)...))) {}
  /// The phrase without key and value, for a caller that names them itself.
  const std::string& allowed() const noexcept { return allowed_; }

 private:
  static constexpr std::size_t most_allowed = 1000;  ///< enough for a list of names
  std::string allowed_;
};

}  // namespace tessera
