// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/comm/comm_options.hpp>

namespace tessera {

bool check_collectives_by_default() {
#ifdef NDEBUG
  return false;
#else
  return true;
#endif
}

void validate(const CommOptions& options) {
  if (!(options.timeout_seconds >= 0 && options.timeout_seconds <= longest_timeout_seconds))
    throw ConfigError("comm.timeout_seconds", fmt::format("{}", options.timeout_seconds),
                      "must be from 0 (never) to 1e9 seconds");
  if (options.max_count < 1 || options.max_count > std::numeric_limits<int>::max())
    throw ConfigError("comm.max_count", std::to_string(options.max_count),
                      "must be from 1 to 2^31 - 1");
}

}  // namespace tessera
