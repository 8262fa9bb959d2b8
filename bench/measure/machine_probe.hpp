// SPDX-License-Identifier: Apache-2.0
// A machine that others use changes its speed over seconds and minutes. Fixed kernels, run beside
// every block of steps on the same ranks, show by how much.
#pragma once

#include <nlohmann/json.hpp>

#include <tessera/base/view.hpp>
#include <tessera/comm/communicator.hpp>

namespace tessera::bench {

/// Seconds of the fixed kernels on the slowest of some ranks, all of them busy.
struct MachineSpeed {
  double product_seconds = 0;  ///< of small matrix products of our own: no library's version counts
  double memory_seconds = 0;   ///< of a sweep through memory that is larger than most caches
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MachineSpeed, product_seconds, memory_seconds)
inline MachineSpeed mean(const MachineSpeed& a, const MachineSpeed& b) {
  return {(a.product_seconds + b.product_seconds) / 2, (a.memory_seconds + b.memory_seconds) / 2};
}

/// The kernels and their memory, of this rank.
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
