// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// The fp64 sums of a training in device memory, as sections of one buffer. `input` and the
/// communicators must outlive this object.
class StepSums {
 public:
  StepSums(const PlanInput& input, const StagePlan& stage, const PlanCommunicators& communicators);

  /// Returns the loss sums of some of the PlanInput::loss_sums() microbatches of a batch: one sum
  /// for each term of each microbatch. The batches of a validation follow those of an epoch.
  Vector<double> losses(Size batch, Range microbatches) const;
  /// Returns the sums of squares of the errors and of the exact solutions; empty if no solution is
  /// compared.
  const Vector<double>& errors() const { return errors_; }
  /// Returns the number of targets that count in the batch of a step.
  const Vector<double>& counted() const { return counted_; }
  /// Returns the numbers of targets that count in an evaluation and in its latest microbatch; empty
  /// if all count.
  const Vector<double>& evaluated() const { return evaluated_; }
  /// Returns the partial sums of the squared norm of the gradient. The first one becomes the norm.
  const Vector<double>& norm() const { return norm_; }
  /// Returns the flag that is not 0 if an element of the gradient is not finite.
  const Vector<double>& finite() const { return finite_; }
  /// Returns a part of a loss sum; empty if these have none.
  const Vector<double>& part() const { return part_; }
  /// Returns the routing of each router (BatchFacts::routing) since the last report.
  const Vector<double>& routing() const { return routing_; }

  /// Allocates the sums for the numbers of samples that `input` has now, set to zero, if their
  /// number changes. Returns the bytes by which they grow.
  Size resize(const StagePlan& stage);

  /// Returns the mean losses of consecutive batches, over all ranks, and sets their sums to zero.
  /// `global_samples` holds the samples of each whole batch; `first` is the number of the first
  /// batch. Collective over loss_axes().
  std::vector<LossParts> take_losses(const std::vector<Size>& global_samples, Size first);
  /// Adds what take_losses() returns to `mean`, the mean over `samples` samples.
  void add_to_mean(LossParts& mean, Size samples, const std::vector<Size>& global_samples,
                   Size first);
  /// Returns the rank's sum of the losses of consecutive batches. The sums stay. Waits for the
  /// device.
  LossParts own_losses(const Range& batches) const;
  /// Returns the sums of losses of the first `steps` batches, over all ranks. The sums stay.
  /// Reduces as many elements as take_losses() does for a whole epoch, so that both add in the same
  /// order. Collective over loss_axes().
  std::vector<LossParts> first_loss_sums(Size steps) const;
  /// Sets the sums of losses of the first batches to what first_loss_sums() returned.
  void set_first_loss_sums(const std::vector<LossParts>& first_loss_sums);
  /// Returns the relative error of the evaluated predictions u against the exact solutions v,
  /// ||u - v|| / ||v|| in the L2 norm, and sets the sums to zero. Collective over loss_axes().
  double take_solution_error();
  /// Returns the rank's sums of routing since the last call, and sets them to zero. Waits for the
  /// device.
  std::vector<double> take_own_routing();
  /// Returns the number of targets of `samples` evaluated samples over the number that count,
  /// and sets the latter to zero; 1 without ModelSpec::ignore_index or if none count. Collective
  /// over loss_axes().
  double take_weight(Size samples);

 private:
  void allocate(const SumsPlan& plan);
  /// Returns all loss sums of consecutive batches.
  Vector<double> batches(Range batches) const {
    return losses(batches.begin, {0, batches.count * input_.loss_sums()});
  }
  /// Returns the parts of the loss sums of batches in host memory.
  LossParts parts_of(const double* sums, Size batches = 1) const;

  const PlanInput& input_;
  LossTerms terms_;
  const Communicator& ranks_;
  Vector<double> buffer_;
  Vector<double> losses_, errors_, counted_, evaluated_, norm_, finite_, routing_, part_;
};

}  // namespace tessera
