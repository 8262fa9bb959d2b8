// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>
#include <tessera/comm/backend.hpp>
#include <tessera/process/wait_limit.hpp>

namespace tessera {

/// Whether the library was built for debugging.
bool check_collectives_by_default();

/// Shared by a world communicator and everything split from it.
struct CommOptions {
  /// A call that lasts longer ends the job; 0: never; at most 1e9.
  double timeout_seconds = default_timeout_seconds();
  bool check_collectives = check_collectives_by_default();  ///< agree on every call before it
  Size max_count = Size{1} << 30;        ///< elements per library call, 1 to 2^31 - 1; more is cut
  Backend backend = Backend::automatic;  ///< of device Views
  bool stage_through_host = false;       ///< copy through host memory even where that is not needed
};

/// Throws ConfigError for a number outside of its limits.
void validate(const CommOptions& options);

}  // namespace tessera
