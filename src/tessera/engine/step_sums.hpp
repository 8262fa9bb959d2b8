// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/view.hpp>
#include <tessera/engine/plan_communicators.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// The fp64 sums of a training on the device, in the order of SumsPlan: losses of the batches of an
/// epoch and of a validation, errors against exact solutions, and the scalars of the end of a step
/// (the gradient's norm, the finite flag). `input` and the communicators must outlive it.
class StepSums {
 public:
  StepSums(const PlanInput& input, const StagePlan& stage, const PlanCommunicators& communicators);

  const Vector<double>& all() const { return sums_; }
  const SumsPlan& places() const { return places_; }
  /// Returns the position of the first loss term of a microbatch. `batch` is the number of the
  /// batch in its epoch; batches of a validation follow.
  Size at(Size batch, Size microbatch) const {
    return (batch * input_.microbatches + microbatch) * input_.loss_terms();
  }

  /// Reads the changed numbers of samples of `input`. Returns the bytes by which the sums grow.
  Size resize(const StagePlan& stage);

  /// Returns the mean loss of each batch on every rank and sets the sums to zero. `global_samples`:
  /// samples of each batch; `first`: number of the first batch. Collective over RankSet::loss.
  std::vector<double> take_losses(const std::vector<Size>& global_samples, Size first);
  /// Returns the loss sums of the first `steps` batches over all ranks and keeps them. Reduces as
  /// many elements as take_losses() does for a whole epoch, so that both add in the same order.
  /// Collective over RankSet::loss.
  std::vector<double> first_loss_sums(Size steps) const;
  /// Sets the loss sums of the first batches to those of first_loss_sums().
  void set_first_loss_sums(const std::vector<double>& first_loss_sums);
  /// Returns the relative error in the L2 norm of the evaluated predictions and sets the sums to
  /// zero. Collective over RankSet::loss.
  double take_solution_error();

  /// Reduces the sum at `position` over ranks and returns it.
  double reduce(const Communicator& ranks, Size position, ReduceOp op) const;

 private:
  Size per_batch() const { return loss_sums(input_, 1); }
  Vector<double> run(Size first, Size count) const;
  /// Reduces all sums of a run over RankSet::loss and copies them to the host.
  void fetch(const Vector<double>& sums);
  /// Sets a run to zero. A stage writes only the terms that its layers make, so sums of others must
  /// be zero. `host_` may share the memory.
  static void clear(const Vector<double>& sums);

  const PlanInput& input_;
  const Communicator& ranks_;
  SumsPlan places_;
  Vector<double> sums_;
  Vector<double>::host_mirror_type host_;
};

}  // namespace tessera
