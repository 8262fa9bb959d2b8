// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tessera/base/memory_guard.hpp>
#include <tessera/base/view.hpp>
#include <tessera/config/config.hpp>
#include <tessera/engine/arenas.hpp>
#include <tessera/engine/bucket_traffic.hpp>
#include <tessera/engine/dataset.hpp>
#include <tessera/engine/frame.hpp>
#include <tessera/engine/layer_operands.hpp>
#include <tessera/engine/optimizer_step.hpp>
#include <tessera/engine/plan_communicators.hpp>
#include <tessera/engine/row_blocks.hpp>
#include <tessera/engine/stage_messages.hpp>
#include <tessera/engine/step_sums.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/tensor/mesh.hpp>

namespace tessera {

/// The options of a training step that no plan depends on.
struct StepOptions {
  double boundary_weight = 1;  ///< weight of boundary terms in LossKind::poisson
  OptimizerConfig optimizer;
  ClipConfig clip;
  bool sum_gradients = false;  ///< gradients of the sum of the batch's losses, not of their mean

  static StepOptions of(const TrainingConfig& training) {
    return {training.boundary_weight, training.optimizer, training.clip,
            training.distributed.gradient_reduce_type == GradientReduceType::sum};
  }
};

/// Executes a plan on this rank: the only training step of all strategies and models. The
/// constructor allocates all memory. A step allocates nothing, and waits for the device only for a
/// collective, the norm of the gradient or the finite flag. T: the compute type.
template <class T>
class Engine {
 public:
  using State = StateOf<T>;  ///< type of parameters, gradients, moments and sums over ranks
  using Compute = T;         ///< type of activations and operands of products

  /// `plan` is the plan of the largest batch. Parameters are drawn from its model's seed. The mesh
  /// must outlive the engine. Collective over the mesh, unless the mesh has already made the plan's
  /// communicators.
  Engine(const Plan& plan, const Mesh& mesh, const StepOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Executes the plan's actions on this rank's samples of a batch: one optimizer step. `number` is
  /// the number of the batch in its epoch and selects the loss sums. Throws Error (wrong_result) on
  /// all ranks if the plan checks that the gradient is finite and it is not.
  void step(const Batch<State>& batch, Size number, double learning_rate);

  /// Computes predictions and losses of this rank's samples of a batch, without gradients, in the
  /// microbatches of a step. `number` counts batches of a validation after those of an epoch. On
  /// ranks with the loss, calls `take`, if set, with each microbatch and its prediction, a matrix
  /// with all rows and the rank's columns. Collective like a step.
  using TakePrediction =
      std::function<void(const Microbatch<State>&, const Matrix<const Compute>&)>;
  void evaluate(const Batch<State>& batch, Size number, const TakePrediction& take);

  /// Sets the numbers of samples of later epochs and validations. Returns the bytes by which the
  /// loss sums grow.
  Size change_samples(Size samples, Size validation_samples);

  /// Returns the sums of losses and errors.
  StepSums& sums() { return sums_; }
  const StepSums& sums() const { return sums_; }

  /// Continues after `steps` steps, when parameters and moments are already set. `first_loss_sums`
  /// are those that StepSums returned at that step. Collective over the mesh.
  void resume(Size steps, const LossScaleState& loss_scale,
              const std::vector<LossParts>& first_loss_sums);

  const Plan& plan() const { return plan_; }
  const StatePlan& state() const { return state_; }
  const PlanCommunicators& communicators() const { return communicators_; }
  /// Returns the parameters that the optimizer updates.
  const StateArena<State>& parameters() const { return parameters_; }
  /// Returns the gradients of the last step over the whole batch, times the loss scale, before
  /// clipping by norm. Only what the rank updates of each bucket is complete.
  const StateArena<State>& gradients() const { return gradients_; }
  const Optimizer<State>& optimizer() const { return optimizer_step_.optimizer(); }
  /// Returns the loss scale: 1 and no skipped step unless the plan scales the loss.
  const LossScale& loss_scale() const { return optimizer_step_.loss_scale(); }
  /// Returns OptimizerStep::own_squared_norm().
  double own_squared_norm() const { return optimizer_step_.own_squared_norm(); }

 private:
  /// The operands of layers, by action of a list.
  using Calls = std::vector<std::optional<LayerCall<Compute>>>;

  /// The part of a step that is being executed.
  struct Now {
    Microbatch<State> microbatch{};
    Size batch_number = 0;  ///< as in step() or evaluate()
    double learning_rate = 0;
    Matrix<const State> targets{};  ///< of the rank's samples of the whole batch
  };

  void carry_out(const Action& action, std::optional<LayerCall<Compute>>& call, const Now& now);
  Microbatch<State> microbatch_of(const Batch<State>& batch, Size number);
  void forward(const Forward& forward, std::optional<LayerCall<Compute>>& made,
               const Now& now) const;
  void backward(const Backward& backward, std::optional<LayerCall<Compute>>& made, const Now& now);
  void open_operands(const LayerCall<Compute>& call, MemoryGuard& guard) const;
  BatchFacts<State> facts_of(const Now& now) const;
  void redistribute(const Move& move, const Microbatch<State>& batch) const;
  void accumulate_tensors(const Accumulate& sum, const Microbatch<State>& batch) const;
  void message(const Message& message, const Microbatch<State>& batch);
  void count_targets(const CountTargets& count, const Now& now) const;
  void count_evaluated_targets(const Microbatch<State>& batch) const;
  void loss_terms(const PartialLoss& loss, const Microbatch<State>& batch) const;
  void loss(const Loss& loss, const Now& now, bool wants_gradient) const;
  void add_error(const Loss& loss, const Microbatch<State>& batch) const;
  Vector<double> loss_sums(const Now& now, Size block = 0) const;
  Size loss_divisor(const Microbatch<State>& batch) const;
  template <class E>
  Matrix<const E> in_loss_shape(const Matrix<const E>& all, Size samples) const;
  void close_arenas(MemoryGuard& guard) const;

  Plan plan_;
  Size rank_;
  const StagePlan& stage_;
  StatePlan state_;
  StepOptions options_;
  PlanCommunicators communicators_;
  StateArena<State> parameters_;
  StateArena<Compute> used_;  ///< the parameters that layers read: the same memory, or copies
  StateArena<State> gradients_;
  GradientTree<State> gradient_tree_;
  Frame<Compute> frame_;
  LayerOperands<Compute> operands_;
  RowBlocks<Compute> row_blocks_;
  BucketTraffic<Compute> buckets_;
  StageMessages messages_;
  StepSums sums_;
  OptimizerStep<Compute> optimizer_step_;
  /// Profiling regions of the passes, which show stages and microbatches in a trace; none without
  /// a pipeline.
  std::vector<std::string> pass_names_;
  struct LayerNames {
    std::string forward, backward;
  };
  std::vector<LayerNames> layer_names_;  ///< profiling regions by layer
  Calls step_calls_, evaluation_calls_;
  Size losses_per_sample_;  ///< PlanInput::loss_count(1)
  BatchSamples samples_;    ///< of the latest batch
};

}  // namespace tessera
