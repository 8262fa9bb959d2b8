// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/kokkos_compat.hpp>
#include <tessera/base/view.hpp>
#include <tessera/comm/request.hpp>
#include <tessera/mesh/mesh.hpp>
#include <tessera/nn/gemm.hpp>
#include <tessera/nn/loss_kind.hpp>
#include <tessera/optim/clip_config.hpp>
#include <tessera/optim/optimizer.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/train/arenas.hpp>
#include <tessera/train/dataset.hpp>

namespace tessera {

/// What a step computes, apart from where things lie.
struct StepOptions {
  LossKind loss = LossKind::mse;
  OptimizerConfig optimizer;
  ClipConfig clip;
  bool sum_gradients = false;  ///< gradient of the sum of the batch's losses, not of their mean
};

/// Carries out plans on this rank: the one training loop of every strategy. All memory is allocated
/// here, once. A step allocates nothing, and waits for the device only where a collective or the
/// norm of the gradient needs it.
template <class T>
class Engine {
 public:
  /// `plan` is that of the largest batch that will be stepped; parameters are drawn from its
  /// model's seed. The mesh must outlive the engine.
  Engine(const Plan& plan, const Mesh& mesh, const StepOptions& options);

  /// One optimizer step on this rank's rows of a batch: the actions of `plan`, in their order. The
  /// batch's loss sums are kept under `slot`, the number of the step in its epoch.
  void step(const Plan& plan, const Batch<T>& batch, Size slot, double learning_rate);

  /// The loss of each of an epoch's steps, on every rank; collective over the batch axes.
  /// `global_rows`: of the batch of each step.
  std::vector<double> losses(const std::vector<Size>& global_rows);

  const ParameterArena<T>& parameters() const { return parameters_; }
  /// Of the last step, over the whole batch, before clipping by norm.
  const ParameterArena<T>& gradients() const { return gradients_; }

 private:
  /// One microbatch of a step as the actions see it.
  struct Pass {
    const Batch<T>& batch;
    Range rows;
    Size index;
  };
  void act(const Action& action, const Plan& plan, const Pass& pass, Size slot, double rate);

  Matrix<const T> input(const Pass& pass, Size layer) const;
  void forward(const Pass& pass, Size layer);
  void loss(const Pass& pass, Size slot);
  void backward(const Pass& pass, Size layer);
  void clip();
  void poll();
  Vector<T> gradients_of(const Bucket& bucket) const;

  ModelSpec model_;
  StepOptions options_;
  Size microbatches_;
  Communicator batch_axis_;
  ParameterArena<T> parameters_;
  ParameterArena<T> gradients_;
  ActivationArena<T> activations_;
  Optimizer<T> optimizer_;
  Gemm<T> gemm_;
  Vector<double> sums_;  ///< loss sums by (step, microbatch), then the squared gradient norm
  HostMirror<Vector<double>> host_sums_;
  std::vector<Request> pending_;  ///< started reductions, by bucket
  T gradient_scale_ = 1;          ///< what clipping by norm makes of the gradients
};

}  // namespace tessera
