// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/view.hpp>
#include <tessera/config/config.hpp>
#include <tessera/engine/arenas.hpp>
#include <tessera/engine/orthogonalization.hpp>
#include <tessera/engine/plan_communicators.hpp>
#include <tessera/engine/step_sums.hpp>
#include <tessera/optim/clipping.hpp>
#include <tessera/optim/exact_squares.hpp>
#include <tessera/optim/loss_scale.hpp>
#include <tessera/optim/optimizer.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// The end of a step on one rank, from reduced gradients to new parameters. The communicators, the
/// sums and the memory of the arenas must outlive it. T: the compute type.
template <class T>
class OptimizerStep {
 public:
  using State = StateOf<T>;

  /// `used` are the parameters that layers read: the memory of `parameters`, or copies of it.
  OptimizerStep(const Plan& plan, Size rank, const StatePlan& state,
                const OptimizerConfig& optimizer, const ClipConfig& clip,
                const PlanCommunicators& communicators, const StepSums& sums,
                const StateArena<State>& parameters, const StateArena<T>& used,
                const StateArena<State>& gradients);

  /// Begins the next step: counts it and forgets the overflow and the clipping of the last one.
  void begin();
  /// Checks on all ranks that the gradient is finite. Throws Error (wrong_result) on all ranks if
  /// it is not and the loss scale cannot shrink.
  void run(const CheckFinite& check);
  /// Finds the largest magnitude of the gradient, for the norm in a fixed order of sums.
  void run(const FindLargest& find);
  /// Clips by value, and chooses the scale that clips by norm. Each element counts once in the norm
  /// over all ranks, which is summed in double.
  void run(const Clip& clip);
  /// Does a part of muon's update, unless the gradient overflows.
  void run(const Orthogonalize& part, double learning_rate);
  void run(const MoveDirections& move) const { orthogonalization_.move(move); }
  /// Updates the other parameters and moments, unless the gradient overflows, and the loss scale.
  void update(double learning_rate);
  /// Continues after `steps` steps, when parameters and moments are already set.
  void resume(Size steps, const LossScaleState& loss_scale);

  /// Returns the rank's part of the squared norm of the last step's gradient before clipping by
  /// norm, as a term of a sum over state_axes(). Waits for the device.
  double own_squared_norm() const;

  /// Returns the number of steps that have begun, with those before resume().
  Size steps() const { return steps_; }
  const Optimizer<State>& optimizer() const { return optimizer_; }
  /// Returns the loss scale: 1 and no skipped step unless the plan scales the loss.
  const LossScale& loss_scale() const { return loss_scale_; }

 private:
  /// Adds contiguous parameters to `runs_`, joined with the last run if every arena permits it.
  void add_run(const ParameterRun<State>& run, const Vector<T>& copy);
  void renew_copies();
  double squared_norm(const Communicator& ranks) const;
  double exact_squared_norm(const Communicator& ranks) const;

  ClipConfig clip_;
  const PlanCommunicators& communicators_;
  const StepSums& sums_;
  StateArena<State> gradients_;
  Optimizer<State> optimizer_;
  Orthogonalization<State> orthogonalization_;
  /// The place of a run of a matrix of muon: its bucket, and its elements there.
  struct MatrixRun {
    std::size_t run;
    Size bucket;
    Range elements;
    State scale;  ///< length of a step along its orthogonal matrix
  };
  std::vector<MatrixRun> matrices_;
  std::vector<ParameterRun<State>> runs_;  ///< the elements that the optimizer updates
  std::vector<Vector<T>> copies_;          ///< copies of each run, if layers read copies
  std::vector<Range> unique_;              ///< elements of the gradients in the norm
  bool in_fixed_order_;                    ///< Numerics::reproducible
  ExactSquares squares_;
  double largest_ = 0;  ///< largest magnitude of the gradient, in a fixed order
  LossScale loss_scale_;
  bool overflows_ = false;    ///< the gradient of this step is not finite on some rank
  double scale_ = 1;          ///< loss scale of this step
  State gradient_scale_ = 1;  ///< factor of the gradients in the update
  Size steps_ = 0;
};

}  // namespace tessera
