// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tessera::bench {

/// The fault that --inject plants on one rank of every case, which shows how a study copes with it.
struct Fault {
  enum class Kind { throws, stalls, slows };
  Kind kind = Kind::throws;
  int rank = 0;
  double share = 0;  ///< slows: of the computation
};

/// "throw@2", "stall@0", "slow@1:10%". Throws ConfigError for other texts.
Fault parse_fault(const std::string& text);

}  // namespace tessera::bench
