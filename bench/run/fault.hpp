// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tessera::bench {

/// What --inject lets go wrong on one rank of every case, to see what a study makes of it.
struct Fault {
  enum class Kind { throws, stalls, slows };
  Kind kind = Kind::throws;
  int rank = 0;
  double share = 0;  ///< slows: of its computation
};

/// "throw@2", "stall@0", "slow@1:10%". Throws ConfigError for anything else.
Fault parse_fault(const std::string& text);

}  // namespace tessera::bench
