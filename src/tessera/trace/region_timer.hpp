// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <Kokkos_Core.hpp>
#include <nlohmann/json.hpp>

#include <tessera/base/types.hpp>
#include <tessera/comm/operation.hpp>

namespace tessera {

/// One call of a communicator on one rank.
struct TracedCall {
  std::string axis;
  Operation operation = Operation::barrier;
  double seconds = 0;
  double begin = 0;      ///< seconds since the instrumented steps began
  double waiting = 0;    ///< part of `seconds`; set by find_waits()
  bool in_pass = false;  ///< made by a stage that has a pass to compute
  std::string tensor{};  ///< layer, bucket or tensor that it moves; "" if unknown, and for scalars
  Size bytes = 0;        ///< payload; 0 if it only waits for a call that was started before
  Size step = 0;         ///< number of the traced step, from 0

  NLOHMANN_DEFINE_TYPE_INTRUSIVE(TracedCall, axis, operation, seconds, begin, waiting, in_pass,
                                 tensor, bytes, step);
};

/// Regions of a pass on a pipeline stage begin with this: "tessera::pass F3".
inline constexpr std::string_view pass_prefix = "tessera::pass ";

/// A region of a step that is not a call: "tessera::forward layer1/output", or the step itself.
struct TracedRegion {
  std::string name;
  double begin = 0;
  double seconds = 0;

  NLOHMANN_DEFINE_TYPE_INTRUSIVE(TracedRegion, name, begin, seconds);
};

/// The device memory of a rank when an action of a step begins.
struct TracedMemory {
  double begin = 0;
  Size action = 0;    ///< position in the list of the step's actions
  Size measured = 0;  ///< bytes that the library has allocated since the timer was made
  Size in_use = 0;    ///< planned for the action; set by RankTrace::add_memory()

  NLOHMANN_DEFINE_TYPE_INTRUSIVE(TracedMemory, begin, action, measured, in_use);
};

/// The breakdown of some steps on one rank, without the time of the instrumentation.
struct RankTrace {
  double step = 0;       ///< inside of Engine::step
  double compute = 0;    ///< forward, loss, backward, clipping; without the calls inside
  double optimizer = 0;  ///< the update
  double products = 0;   ///< matrix products, part of compute
  std::vector<TracedCall> calls;
  std::vector<TracedRegion> regions{};  ///< in the order in which they end
  std::vector<TracedMemory> memory{};   ///< one entry per action
  Size planned_bytes = 0;               ///< of the rank's memory; set by add_memory()
  Size left_out = 0;                    ///< calls and regions beyond the limit of the timer

  /// Adds the memory that was allocated before the timer was made to what was measured, and the
  /// plan, which is memory_timeline() of the rank.
  void add_memory(Size measured_before, const nlohmann::json& planned);

  NLOHMANN_DEFINE_TYPE_INTRUSIVE(RankTrace, step, compute, optimizer, products, calls, regions,
                                 memory, planned_bytes, left_out);
};

/// Times the regions of the engine and the communicators through the callbacks of Kokkos Tools
/// while it lives. It fences at both ends of every region, so that nothing overlaps and steps take
/// longer: such a run gives no figure of merit. Only one may live at a time. A tool that was loaded
/// before still sees all regions.
class RegionTimer {
 public:
  /// Keeps at most `most_events` calls and regions.
  explicit RegionTimer(Size most_events = std::numeric_limits<Size>::max());
  ~RegionTimer();
  RegionTimer(const RegionTimer&) = delete;
  RegionTimer& operator=(const RegionTimer&) = delete;

  const RankTrace& trace() const;
};

}  // namespace tessera
