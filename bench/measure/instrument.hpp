// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <Kokkos_Core.hpp>

#include <tessera/comm/operation.hpp>

#include "document/document.hpp"

namespace tessera::bench {

/// One call of a communicator on one rank.
struct TracedCall {
  std::string axis;
  Operation operation = Operation::barrier;
  double seconds = 0;
  double begin = 0;      ///< seconds since the instrumented steps began
  double waiting = 0;    ///< part of `seconds`; set by find_waits()
  bool in_pass = false;  ///< made by a stage that has a pass to compute

  TESSERA_FIELDS(axis, operation, seconds, begin, waiting, in_pass);
};

/// Regions of a pass on a pipeline stage begin with this: "tessera::pass F3".
inline constexpr std::string_view pass_prefix = "tessera::pass ";

/// A region of a step that is not a call: "tessera::forward", or the step itself.
struct TracedRegion {
  std::string name;
  double begin = 0;
  double seconds = 0;

  TESSERA_FIELDS(name, begin, seconds);
};

/// The breakdown of some steps on one rank, without the time of the instrumentation.
struct RankTrace {
  double step = 0;       ///< inside of Engine::step
  double compute = 0;    ///< forward, loss, backward, clipping; without the calls inside
  double optimizer = 0;  ///< the update
  double products = 0;   ///< matrix products, part of compute
  std::vector<TracedCall> calls;
  std::vector<TracedRegion> regions{};  ///< in the order in which they end

  TESSERA_FIELDS(step, compute, optimizer, products, calls, regions);
};

/// Times the regions of the engine and the communicators through the callbacks of Kokkos Tools
/// while it lives. It fences at both ends of every region, so that nothing overlaps and steps take
/// longer: such a run gives no figure of merit. Only one may live at a time; another tool does not
/// see regions meanwhile.
class RegionTimer {
 public:
  RegionTimer();
  ~RegionTimer();
  RegionTimer(const RegionTimer&) = delete;
  RegionTimer& operator=(const RegionTimer&) = delete;

  const RankTrace& trace() const;

 private:
  Kokkos::Tools::Experimental::EventSet earlier_;  ///< the callbacks before
};

}  // namespace tessera::bench
