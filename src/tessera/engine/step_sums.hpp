// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include <tessera/base/view.hpp>
#include <tessera/engine/plan_communicators.hpp>
#include <tessera/nn/models/loss_terms.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// Sums of losses, or their means.
struct LossParts {
  double predictions = 0;        ///< the loss of the predictions
  std::vector<double> layers{};  ///< what layers add to it: the terms of loss_terms_of()

  double total() const;
  /// Adds `factor` times the other parts.
  void add(const LossParts& other, double factor = 1);
};
/// Returns the loss that a validation reports, without the terms that only guide a training.
double validation_loss(const ModelSpec& model, const LossParts& parts);

/// The fp64 sums of a training in device memory, in the sections of SumsPlan: losses of the batches
/// of an epoch and of a validation, errors against exact solutions, numbers of targets that count,
/// and the scalars of the end of a step (the norm of the gradient, the finite flag). `input` and
/// the communicators must outlive this object.
class StepSums {
 public:
  StepSums(const PlanInput& input, const StagePlan& stage, const PlanCommunicators& communicators);

  const Vector<double>& all() const { return sums_; }
  /// Returns the sections of all().
  const SumsPlan& places() const { return places_; }
  /// Returns the position of the first of the loss sums `number` of a batch in all(), one for each
  /// term. `batch` is the number of the batch in its epoch; the batches of a validation follow.
  Size at(Size batch, Size number) const {
    return (batch * input_.loss_sums() + number) * input_.loss_terms();
  }

  /// Allocates the sums for the numbers of samples that `input` has now, set to zero, if their
  /// number changes. Returns the bytes by which they grow.
  Size resize(const StagePlan& stage);

  /// Returns the mean losses of consecutive batches, over all ranks, and sets their sums to zero.
  /// `global_samples` holds the samples of each whole batch; `first` is the number of the first
  /// batch. Collective over RankSet::loss.
  std::vector<LossParts> take_losses(const std::vector<Size>& global_samples, Size first);
  /// Returns the rank's sum of the losses of consecutive batches. The sums stay. Waits for the
  /// device.
  LossParts own_losses(const Range& batches) const;
  /// Returns the sums of losses of the first `steps` batches, over all ranks. The sums stay.
  /// Reduces as many elements as take_losses() does for a whole epoch, so that both add in the same
  /// order. Collective over RankSet::loss.
  std::vector<LossParts> first_loss_sums(Size steps) const;
  /// Sets the sums of losses of the first batches to what first_loss_sums() returned.
  void set_first_loss_sums(const std::vector<LossParts>& first_loss_sums);
  /// Returns the relative error of the evaluated predictions u against the exact solutions v,
  /// ||u - v|| / ||v|| in the L2 norm, and sets the sums to zero. Collective over RankSet::loss.
  double take_solution_error();

  /// Returns the rank's sums of routing since the last call, and sets them to zero. Waits for the
  /// device.
  std::vector<double> take_own_routing();

  /// Returns the number of targets of `samples` evaluated samples over the number that count,
  /// and sets the latter to zero; 1 without ModelSpec::ignore_index or if none count. Collective
  /// over RankSet::loss.
  double take_weight(Size samples);

  /// Reduces the elements from `position` on over `ranks` and returns them. Waits for the device.
  template <std::size_t count>
  std::array<double, count> reduce(const Communicator& ranks, Size position, ReduceOp op) const {
    ranks.all_reduce(run(position, count), op);
    std::array<double, count> values;
    Kokkos::deep_copy(
        Kokkos::View<double*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(values.data(), count),
        run(position, count));
    return values;
  }
  double reduce(const Communicator& ranks, Size position, ReduceOp op) const {
    return reduce<1>(ranks, position, op)[0];
  }
  /// Sets `count` sums from `position` on to zero.
  void clear(Size position, Size count) const { clear(run(position, count)); }

 private:
  /// Returns the number of loss sums of a batch.
  Size per_batch() const { return loss_sums(input_, 1); }
  /// Returns the parts of the sums of `batches` batches in host memory.
  LossParts parts_of(const double* sums, Size batches = 1) const;
  Vector<double> run(Size first, Size count) const;
  /// Reduces a run over RankSet::loss and copies all sums to the host.
  void fetch(const Vector<double>& sums);
  /// Sets a run to zero, because a pipeline stage writes only the terms that its own layers make.
  /// `host_` may be the same memory, so read it first.
  static void clear(const Vector<double>& sums);

  const PlanInput& input_;
  LossTerms terms_;
  const Communicator& ranks_;
  SumsPlan places_;
  Vector<double> sums_;
  Vector<double>::host_mirror_type host_;
};

}  // namespace tessera
