// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <tessera/base/types.hpp>
#include <tessera/comm/backend.hpp>
#include <tessera/process/wait_limit.hpp>

namespace tessera {

/// Returns whether the library was built for debugging.
bool check_collectives_by_default();

/// A rank of a launch whose other ranks do not exist.
struct FakeRank {
  int rank = 0, ranks = 1;
};

/// The options of a world communicator and of all communicators split from it.
struct CommOptions {
  /// A call that takes longer ends the job. 0 means no limit; at most 1e9.
  double timeout_seconds = default_timeout_seconds();
  bool check_collectives = check_collectives_by_default();  ///< compare every call first
  Size max_count = Size{1} << 30;        ///< elements per library call, 1 to 2^31 - 1
  Backend backend = Backend::automatic;  ///< of device Views
  bool stage_through_host = false;       ///< even if MPI could access the memory
  /// Makes one process this rank, for measurements. What other ranks would send is filled from its
  /// own data (make_fake_transport()), so results are meaningless.
  std::optional<FakeRank> fake{};
};

/// Throws ConfigError for a number outside its limits.
void validate(const CommOptions& options);

}  // namespace tessera
