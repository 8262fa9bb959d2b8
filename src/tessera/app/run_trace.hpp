// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <tessera/base/types.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/tensor/mesh.hpp>
#include <tessera/trace/region_timer.hpp>

namespace tessera {

/// The steps that `run --trace` traces, counted from 1 at the start of the run. The first step
/// touches memory for the first time and connects ranks.
using TracedSteps = std::pair<Size, Size>;
inline constexpr TracedSteps default_traced_steps{2, 11};

/// Traces some steps of a run and writes them as a file for Perfetto.
class RunTrace {
 public:
  RunTrace(std::string file, const Mesh& mesh, Size first_step)
      : file_(std::move(file)), mesh_(mesh), first_step_(first_step) {}

  /// Starts to trace. Collective.
  void begin();
  /// Ends the trace and writes the file on rank 0. Only the first call does something. `measured`:
  /// bytes of device memory on this rank, which the plan of the steps also tells. All ranks throw
  /// the same Error (usage) if the file cannot be written. Collective.
  void write(const Plan& plan, Size measured);

 private:
  std::string file_;
  Mesh mesh_;
  Size first_step_;
  std::optional<RegionTimer> timer_;
  bool is_written_ = false;
};

}  // namespace tessera
