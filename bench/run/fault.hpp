// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tessera::bench {

/// What goes wrong on purpose, on one rank, in the warm-up of every case that has this rank: to see
/// what a study makes of it (--inject).
struct Fault {
  enum class Kind { throws, stalls } kind = Kind::throws;
  int rank = 0;
};

/// "throw@1", "stall@0". Throws Error (usage).
Fault parse_fault(const std::string& text);

/// Throws, or does not return for an hour, on the rank of the fault.
void inject(const Fault& fault, int rank);

}  // namespace tessera::bench
