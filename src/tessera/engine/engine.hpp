// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/kokkos_compat.hpp>
#include <tessera/base/view.hpp>
#include <tessera/comm/request.hpp>
#include <tessera/engine/arenas.hpp>
#include <tessera/engine/dataset.hpp>
#include <tessera/engine/groups.hpp>
#include <tessera/engine/redistribution.hpp>
#include <tessera/mesh/mesh.hpp>
#include <tessera/nn/gemm.hpp>
#include <tessera/nn/loss_kind.hpp>
#include <tessera/optim/clip_config.hpp>
#include <tessera/optim/optimizer.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// What a step computes, apart from where things lie.
struct StepOptions {
  LossKind loss = LossKind::mse;
  OptimizerConfig optimizer;
  ClipConfig clip;
  bool sum_gradients = false;  ///< gradient of the sum of the batch's losses, not of their mean
};

/// Carries out plans on this rank: the one training loop of every strategy. All memory is allocated
/// here, once. A step allocates nothing, and waits for the device only where a collective, the norm
/// of the gradient or the finite flag needs it.
template <class T>
class Engine {
 public:
  /// `plan` is that of the largest batch that will be stepped; parameters are drawn from its
  /// model's seed. The mesh must outlive the engine. Collective over the mesh unless it has made
  /// these Groups before.
  Engine(const Plan& plan, const Mesh& mesh, const StepOptions& options);

  /// One optimizer step on this rank's rows of a batch: the actions of `plan`, in their order. The
  /// batch's loss sums are kept under `slot`, the number of the step in its epoch. Throws Error
  /// (wrong_result) on all ranks if the plan checks that the gradient is finite and it is not.
  void step(const Plan& plan, const Batch<T>& batch, Size slot, double learning_rate);

  /// The loss of each of an epoch's steps, on every rank; collective over the batch axes.
  /// `global_rows`: of the batch of each step.
  std::vector<double> losses(const std::vector<Size>& global_rows);

  const ModelSpec& local_model() const { return model_; }
  const StatePlan& state() const { return state_; }
  const Groups& groups() const { return groups_; }
  const ParameterArena<T>& parameters() const { return parameters_; }
  /// Of the last step, over the whole batch, before clipping by norm. Where moments alone are
  /// sharded, only the own share of each unit is.
  const ParameterArena<T>& gradients() const { return gradients_; }
  const Optimizer<T>& optimizer() const { return optimizer_; }

 private:
  /// One microbatch of a step as the actions see it.
  struct Pass {
    const Batch<T>& batch;
    Range rows;
    Size index;
  };
  void act(const Action& action, const Plan& plan, const Pass& pass, Size slot, double rate);
  Pass pass_of(const Batch<T>& batch, Size microbatch) const;

  Size rows_of_output(const Pass& pass, Size layer) const;
  Matrix<T> output(const Pass& pass, Size layer) const;
  Matrix<T> output_gradient(const Pass& pass, Size layer) const;
  Matrix<T> product(const Pass& pass, Size layer) const;
  Matrix<const T> input(const Pass& pass, Size layer) const;

  void redistribute_input(const Pass& pass, Size layer);
  void forward(const Pass& pass, Size layer);
  void redistribute_output(const Pass& pass, Size layer);
  void activate(const Pass& pass, Size layer);
  void loss(const Pass& pass, Size slot);
  void redistribute_gradient(const Pass& pass, Size layer);
  void activate_backward(const Pass& pass, Size layer);
  void gather_gradient(const Pass& pass, Size layer);
  void backward(const Pass& pass, Size layer);

  void gather(Size unit) const;
  Request start_gather(Size unit) const;
  void reduce_scatter(Size unit, Size microbatch) const;
  Request start_reduce_scatter(Size unit, Size microbatch) const;
  void finish_reduce_scatter(Size unit, Size microbatch);
  Vector<T> scattered(Size unit, Size microbatch) const;
  void add_incoming(Size unit, Size microbatch) const;
  Vector<T> gradients_of(const Bucket& bucket) const;

  void check_finite();
  void clip();
  double sum_over(const Communicator& ranks, Size slot, ReduceOp op);
  void poll();

  ModelSpec model_;  ///< with this rank's extents
  ModelSpec whole_model_;
  Layouts layouts_;
  StatePlan state_;
  StepOptions options_;
  Size microbatches_;
  SumsPlan sums_plan_;
  Groups groups_;
  ParameterArena<T> parameters_;
  ParameterArena<T> gradients_;
  Vector<T> incoming_;  ///< share of a microbatch's gradient, to be added to the others
  ActivationArena<T> activations_;
  Redistribution<T> along_model_;
  Optimizer<T> optimizer_;
  std::vector<ParameterRun<T>> runs_;  ///< what the optimizer updates
  std::vector<Range> unique_;          ///< of the gradients, what counts for the norm
  Gemm<T> gemm_;
  Vector<double> sums_;  ///< as SumsPlan says
  HostMirror<Vector<double>> host_sums_;
  Request gather_in_flight_;
  Request scatter_in_flight_;
  std::vector<Request> reductions_;  ///< started ones, by bucket
  T gradient_scale_ = 1;             ///< what clipping by norm makes of the gradients
  Size steps_ = 0;
};

}  // namespace tessera
