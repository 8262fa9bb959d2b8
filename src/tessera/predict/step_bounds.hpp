// SPDX-License-Identifier: Apache-2.0
// Lower bounds of the time and memory of a step, without its plan.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <tessera/plan/plan.hpp>
#include <tessera/predict/machine.hpp>

namespace tessera {

/// Lower bounds of the time and the memory of a step.
struct StepBound {
  double seconds = 0;     ///< never more than SimulatedStep::step_seconds
  Size memory_bytes = 0;  ///< never more than the memory of the rank that needs most
};

/// Computes bounds for plans of one model on a machine. Counted are the kernels of layers and of
/// the optimizer, with the smallest extents and the fewest samples of any rank, and in a pipeline
/// the first passes of a step on the way to each stage and the last ones on the way back; not
/// counted are calls, waiting for them, and small kernels. The memory is that of parameters,
/// gradients and moments.
class StepBounds {
 public:
  explicit StepBounds(const Machine& machine) : machine_(machine) {}

  /// Returns a bound for each number of microbatches; the other fields are those of `input`. Throws
  /// ConfigError if the mesh cannot run the model.
  std::vector<StepBound> of(PlanInput input, const std::vector<Size>& microbatches);

 private:
  /// Returns the seconds of each layer's passes of the smallest microbatch. `outline` is an
  /// outline_plan().
  const std::vector<PassCount>& passes(const Plan& outline, double bytes_per_second);

  const Machine& machine_;
  std::map<std::string, std::vector<PassCount>> passes_;  ///< by what determines them
};

}  // namespace tessera
