// SPDX-License-Identifier: Apache-2.0
// Fixed kernels that measure the speed of the machine beside every block of steps, on the same
// ranks. A shared machine changes its speed within seconds and minutes.
#pragma once

#include <tessera/base/view.hpp>
#include <tessera/comm/communicator.hpp>

#include "document/document.hpp"

namespace tessera::bench {

/// Seconds of the fixed kernels on the slowest rank, with all ranks busy.
struct MachineSpeed {
  double product_seconds = 0;  ///< small matrix products, which no library computes
  double memory_seconds = 0;   ///< a sweep through memory larger than most caches

  static void fields(auto& f, auto& v) {
    f("product_seconds", positive(v.product_seconds), "memory_seconds", positive(v.memory_seconds));
  }
};
inline MachineSpeed mean(const MachineSpeed& a, const MachineSpeed& b) {
  return {(a.product_seconds + b.product_seconds) / 2, (a.memory_seconds + b.memory_seconds) / 2};
}

/// The kernels and their memory on this rank.
class MachineProbe {
 public:
  MachineProbe();
  /// Collective over `ranks`.
  MachineSpeed measure(const Communicator& ranks) const;

 private:
  Matrix<float> a_, b_, c_;
  Vector<float> from_, to_;
};

}  // namespace tessera::bench
