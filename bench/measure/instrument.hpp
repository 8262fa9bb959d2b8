// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/comm/ledger.hpp>

namespace tessera::bench {

/// One call of a communicator on one rank.
struct TracedCall {
  std::string axis;
  Operation operation = Operation::barrier;
  double seconds = 0;
  double begin = 0;  ///< seconds since the instrumented steps began
};

/// One region of a step that is no call: "tessera::forward", or the step itself.
struct TracedRegion {
  std::string name;
  double begin = 0;
  double seconds = 0;
};

/// Where the time of some steps went on one rank, without the time of looking.
struct RankTrace {
  double step = 0;       ///< inside of Engine::step
  double compute = 0;    ///< forward, loss, backward, clipping; without the calls inside
  double optimizer = 0;  ///< the update
  std::vector<TracedCall> calls;
  std::vector<TracedRegion> regions{};  ///< in the order in which they end
};

/// Times the regions that the engine and the communicators open, through the callbacks of Kokkos
/// Tools, for as long as it lives. The device is waited for at both ends of every region, so
/// nothing overlaps and steps take longer: no figure of merit comes from such a run. One at a time;
/// a tool that was there before does not see regions meanwhile.
class RegionTimer {
 public:
  /// `ledger` tells which axis a call went over.
  explicit RegionTimer(const Ledger& ledger);
  ~RegionTimer();
  RegionTimer(const RegionTimer&) = delete;
  RegionTimer& operator=(const RegionTimer&) = delete;

  const RankTrace& trace() const;
};

}  // namespace tessera::bench
