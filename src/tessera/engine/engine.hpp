// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include <tessera/base/memory_guard.hpp>
#include <tessera/base/view.hpp>
#include <tessera/comm/request.hpp>
#include <tessera/config/config.hpp>
#include <tessera/engine/arenas.hpp>
#include <tessera/engine/dataset.hpp>
#include <tessera/engine/frame.hpp>
#include <tessera/engine/plan_communicators.hpp>
#include <tessera/mesh/mesh.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/products/gemm.hpp>
#include <tessera/optim/loss_scale.hpp>
#include <tessera/optim/optimizer.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// What a step computes, apart from where things lie.
struct StepOptions {
  double boundary_weight = 1;  ///< of LossKind::poisson
  OptimizerConfig optimizer;
  ClipConfig clip;
  bool sum_gradients = false;  ///< gradient of the sum of the batch's losses, not of their mean

  static StepOptions of(const TrainingConfig& training) {
    return {training.boundary_weight, training.optimizer, training.clip,
            training.distributed.gradient_reduce_type == "sum"};
  }
};

/// Carries a plan out on this rank: the one training step of every strategy and model. T: the
/// compute type. All memory is allocated here, once. A step allocates nothing, and waits for the
/// device only where a collective, the norm of the gradient or the finite flag needs it.
template <class T>
class Engine {
 public:
  using State = StateOf<T>;  ///< of parameters, gradients, moments and sums over ranks
  using Compute = T;         ///< of activations and of the operands of products

  /// `plan` is that of the largest batch that will be stepped; parameters are drawn from its
  /// model's seed. The mesh must outlive the engine. Collective over the mesh unless it has made
  /// these communicators before.
  Engine(const Plan& plan, const Mesh& mesh, const StepOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// One optimizer step on this rank's rows of a batch: the plan's actions, in their order. The
  /// batch's loss sums are kept under `slot`, the number of the step in its epoch. Throws Error
  /// (wrong_result) on all ranks if the plan checks that the gradient is finite and it is not.
  void step(const Batch<State>& batch, Size slot, double learning_rate);

  /// Forward and loss of this rank's rows of a batch, in microbatches as in a step, without
  /// gradients; the loss sums are kept under `slot`, behind those of steps if the plan
  /// validates. `take`, if any, sees each prediction, all columns that the rank has. Collective
  /// like a step.
  using TakePrediction =
      std::function<void(const Microbatch<State>&, const Matrix<const Compute>&)>;
  void evaluate(const Batch<State>& batch, Size slot, const TakePrediction& take);

  /// From here on epochs and validations have this many samples; returns by how many bytes the sums
  /// have grown.
  Size change_samples(Size samples, Size validation_samples);

  /// The loss of each of an epoch's steps, on every rank; collective over the batch axes.
  /// `global_samples`: of the batch of each step; the first one has been kept under `first_slot`.
  std::vector<double> losses(const std::vector<Size>& global_samples, Size first_slot = 0);
  /// The relative error in the L2 norm of what has been evaluated since the last call, if the plan
  /// compares predictions with solutions; collective like losses().
  double solution_error();

  /// The sums of an epoch's losses after some of its steps, over all ranks; they are kept as well.
  /// Collective over the batch axes, on as many elements as losses() of a whole epoch, so that both
  /// add in the same order.
  std::vector<double> losses_so_far(Size steps);
  /// Goes on as after `steps` steps, once parameters and moments are where local_tensors() says:
  /// with what losses_so_far() gave then. Collective over the mesh.
  void resume(Size steps, const LossScaleState& loss_scale,
              const std::vector<double>& losses_so_far);

  const Plan& plan() const { return plan_; }
  const StatePlan& state() const { return state_; }
  const PlanCommunicators& communicators() const { return communicators_; }
  /// As the optimizer sees them.
  const StateArena<State>& parameters() const { return parameters_; }
  /// Of the last step, over the whole batch, before clipping by norm, times the loss scale. Where
  /// moments alone are sharded, only the own share of each bucket is.
  const StateArena<State>& gradients() const { return gradients_; }
  const Optimizer<State>& optimizer() const { return optimizer_; }
  /// 1 and nothing skipped unless the plan scales the loss.
  const LossScale& loss_scale() const { return loss_scale_; }

 private:
  /// The operands of an action on a layer, made once for as long as the number of rows stays.
  struct Operands {
    Size samples = -1;
    std::optional<LayerCall<Compute>> call{};
  };

  void act(const Action& action, Operands& operands, const Microbatch<State>& batch, Size slot,
           double rate);
  BatchFacts<State> facts_of(const Action& action, const Microbatch<State>& batch, Size slot) const;
  Microbatch<State> microbatch_of(const Batch<State>& batch, Size number) const;

  void redistribute(const Action& action, const Microbatch<State>& batch) const;
  void accumulate_slots(const Action& action, const Microbatch<State>& batch) const;
  const LayerCall<Compute>& operands_of(const Action& action, Operands& made,
                                        const Microbatch<State>& batch, Size slot);
  LayerCall<Compute> forward_operands(const Action& action, const Microbatch<State>& batch) const;
  LayerCall<Compute> backward_operands(const Action& action, const Microbatch<State>& batch) const;
  void close_arenas(MemoryGuard& guard) const;
  LayerCall<Compute> operands_of_layer(Size layer, const Microbatch<State>& batch) const;
  bool reads_x_as_fact(Size layer, SlotId input) const;
  template <class E>
  Matrix<const E> as_loss_sees(const Matrix<const E>& all, const Microbatch<State>& batch) const;
  void loss_terms(const Action& action, const Microbatch<State>& batch) const;
  void loss(const Action& action, const Microbatch<State>& batch, Size slot, bool gradient);
  Size loss_divisor(const Microbatch<State>& batch) const;
  Size loss_slot(const Microbatch<State>& batch, Size slot) const;

  void start_message(const Action& action, const Microbatch<State>& batch);
  Request& message_of(const Action& action, const Microbatch<State>& batch);
  void gather(Size bucket) const;
  void start_gather(Size bucket);
  void clear_padding(Size bucket) const;
  void reduce_scatter(Size bucket, Size microbatch) const;
  void start_reduce_scatter(Size bucket, Size microbatch);
  void finish_reduce_scatter(Size bucket, Size microbatch);
  Vector<State> scattered(Size bucket, Size microbatch) const;
  void add_incoming(Size bucket, Size microbatch) const;
  /// Whether a reduced gradient comes on top of those of earlier microbatches.
  bool is_added(Size microbatch) const { return microbatch > 0 && state_.reduces_every_microbatch; }
  void start_reduce(Size bucket);
  void reduce_rows(Size unit) const;
  void finish(Request& request);

  void check_finite();
  void clip();
  void update(State rate);
  void renew_copies();
  double sum_over(const Communicator& ranks, Size slot, ReduceOp op);
  void poll();

  /// A parameter where a layer finds it.
  struct ParameterView {
    Size bucket;
    Range elements;  ///< of the bucket, without padding
  };

  Plan plan_;
  const StagePlan* stage_;         ///< of the plan
  std::vector<LayerSpec> layers_;  ///< with this rank's extents
  StatePlan state_;
  StepOptions options_;
  SumsPlan sums_plan_;
  PlanCommunicators communicators_;
  StateArena<State> parameters_;
  StateArena<Compute> used_;  ///< what layers read of them and ranks gather: the same, or copies
  StateArena<State> gradients_;
  Vector<State> incoming_;  ///< share of a microbatch's gradient, to be added to the others
  Vector<State> arriving_;  ///< other ranks' shares while a reduction goes on
  Frame<Compute> frame_;
  std::vector<std::vector<ParameterView>> views_;  ///< by layer
  std::vector<std::vector<Range>> padding_;        ///< by bucket: what no parameter fills
  Optimizer<State> optimizer_;
  std::vector<ParameterRun<State>> runs_;  ///< what the optimizer updates
  std::vector<Vector<Compute>> copies_;    ///< of each run, if they are other memory
  std::vector<Range> unique_;              ///< of the gradients, what counts for the norm
  Gemm<Compute> gemm_;
  Vector<State> scratch_;  ///< of layers
  /// Regions of the passes, to see stages and microbatches in a trace; none without a pipeline.
  std::vector<std::string> pass_names_;
  std::vector<Operands> operands_;             ///< by action of a step
  std::vector<Operands> evaluation_operands_;  ///< and of an evaluation
  Vector<double> sums_;                        ///< as SumsPlan says
  Vector<double>::host_mirror_type host_sums_;
  Request gather_in_flight_;
  Request scatter_in_flight_;
  std::vector<Request> reductions_;                      ///< started ones, by bucket
  std::map<std::pair<SlotId, Size>, Request> messages_;  ///< by tensor and copy of it
  Size in_flight_ = 0;  ///< requests that have been started and not finished
  LossScale loss_scale_;
  bool overflows_ = false;    ///< the step's gradients do, on some rank
  State gradient_scale_ = 1;  ///< what the update multiplies gradients by
  Size steps_ = 0;
};

}  // namespace tessera
