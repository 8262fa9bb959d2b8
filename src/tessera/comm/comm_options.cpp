// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>

#include <tessera/comm/comm_fields.hpp>

namespace tessera {

bool check_collectives_by_default() {
#ifdef NDEBUG
  return false;
#else
  return true;
#endif
}

const Fields<CommOptions>& comm_fields() {
  using C = CommOptions;
  constexpr Bounds timeout{.least = 0,
                           .most = longest_timeout_seconds,
                           .allowed = "must be from 0 (never) to 1e9 seconds"};
  static const Fields<C> fields{
      {"distributed.backend", &C::backend, "library that moves tensors between ranks"},
      {"comm.timeout_seconds", &C::timeout_seconds,
       "abort the job when a collective takes longer; 0: never", timeout},
      {"comm.check_collectives", &C::check_collectives,
       "check that all ranks make the same collective call", Tier::internal},
  };
  return fields;
}

void validate(const CommOptions& options) {
  check(comm_fields(), options);
  if (options.max_count < 1 || options.max_count > std::numeric_limits<int>::max())
    throw ConfigError("comm.max_count", std::to_string(options.max_count),
                      "must be from 1 to 2^31 - 1");
}

}  // namespace tessera
