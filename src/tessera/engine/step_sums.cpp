// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/engine/step_sums.hpp>

namespace tessera {

double LossParts::total() const {
  return std::accumulate(layers.begin(), layers.end(), predictions);
}

void LossParts::add(const LossParts& other, double factor) {
  predictions += factor * other.predictions;
  layers.resize(std::max(layers.size(), other.layers.size()));
  for (std::size_t t = 0; t < other.layers.size(); ++t) layers[t] += factor * other.layers[t];
}

double validation_loss(const ModelSpec& model, const LossParts& parts) {
  const LossTerms terms = loss_terms_of(model);
  double loss = parts.predictions;
  for (std::size_t t = 0; t < terms.all.size(); ++t)
    if (terms.all[t].in_validation) loss += parts.layers[t];
  return loss;
}

namespace {

/// Returns sums in host memory and sets them to zero, because a pipeline stage writes only the
/// terms that its own layers make. Waits for the device.
std::vector<double> take(const Vector<double>& sums) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), sums);
  std::vector<double> taken(host.data(), host.data() + host.extent(0));
  Kokkos::deep_copy(ExecSpace(), sums, 0.0);
  return taken;
}

}  // namespace

StepSums::StepSums(const PlanInput& input, const StagePlan& stage,
                   const PlanCommunicators& communicators)
    : input_(input),
      terms_(loss_terms_of(input.model)),
      ranks_(communicators[loss_axes(input.mesh)]) {
  allocate(plan_sums(input, stage));
}

void StepSums::allocate(const SumsPlan& plan) {
  buffer_ = {};
  buffer_ = allocate_zeros<double>("tessera::sums", plan.total());
  double* next = buffer_.data();
  const auto section = [&](Size count) {
    return alias_vector(std::exchange(next, next + count), count);
  };
  losses_ = section(plan.losses + plan.validation);
  errors_ = section(plan.errors);
  counted_ = section(plan.counted);
  evaluated_ = section(plan.evaluated);
  norm_ = section(plan.norm);
  finite_ = section(plan.finite);
  routing_ = section(plan.routing);
  part_ = section(plan.part);
}

Size StepSums::resize(const StagePlan& stage) {
  const SumsPlan plan = plan_sums(input_, stage);
  const Size grows_by = plan.total() - static_cast<Size>(buffer_.extent(0));
  if (grows_by != 0) allocate(plan);
  return grows_by * size_of(DType::float64);
}

Vector<double> StepSums::losses(Size batch, Range microbatches) const {
  const Size terms = 1 + static_cast<Size>(terms_.of_sum.size());
  const Size first = (batch * input_.loss_sums() + microbatches.begin) * terms;
  return alias_vector(losses_.data() + first, microbatches.count * terms);
}

LossParts StepSums::parts_of(const double* sums, Size batches) const {
  LossParts parts{0, std::vector<double>(terms_.all.size())};
  const Size terms = input_.loss_terms();
  for (Size i = 0; i < loss_sums(input_, batches); ++i) {
    const Size term = i % terms;
    double& part = term == 0 ? parts.predictions : parts.layers[terms_.of_sum[term - 1]];
    part += sums[i];
  }
  return parts;
}

std::vector<LossParts> StepSums::take_losses(const std::vector<Size>& global_samples, Size first) {
  const auto count = static_cast<Size>(global_samples.size());
  const Vector<double> sums = batches({first, count});
  ranks_.all_reduce(sums);
  const std::vector<double> taken = take(sums);
  std::vector<LossParts> losses;
  const Size per_sample = input_.loss_count(1);
  for (Size b = 0; b < count; ++b) {
    LossParts& loss = losses.emplace_back(parts_of(taken.data() + loss_sums(input_, b)));
    const auto divisor = static_cast<double>(per_sample * global_samples[b]);
    loss.predictions /= divisor;
    for (double& part : loss.layers) part /= divisor;
  }
  return losses;
}

void StepSums::add_to_mean(LossParts& mean, Size samples, const std::vector<Size>& global_samples,
                           Size first) {
  const std::vector<LossParts> losses = take_losses(global_samples, first);
  for (std::size_t b = 0; b < losses.size(); ++b)
    mean.add(losses[b], static_cast<double>(global_samples[b]) / static_cast<double>(samples));
}

LossParts StepSums::own_losses(const Range& batches) const {
  const auto host =
      Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), this->batches(batches));
  return parts_of(host.data(), batches.count);
}

std::vector<LossParts> StepSums::first_loss_sums(Size steps) const {
  const Vector<double> own = batches({0, input_.steps_per_epoch()});
  const Vector<double> sums =
      allocate_vector<double>("tessera::first_loss_sums", static_cast<Size>(own.extent(0)));
  Kokkos::deep_copy(sums, own);
  ranks_.all_reduce(sums);
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), sums);
  std::vector<LossParts> losses;
  for (Size s = 0; s < steps; ++s) losses.push_back(parts_of(host.data() + loss_sums(input_, s)));
  return losses;
}

void StepSums::set_first_loss_sums(const std::vector<LossParts>& first_loss_sums) {
  // take_losses() adds over ranks, so one rank holds the sums and the others zero. The first of the
  // layers with a term holds that of all.
  if (ranks_.rank() != 0) return;
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), losses_);
  for (std::size_t s = 0; s < first_loss_sums.size(); ++s) {
    const LossParts& parts = first_loss_sums[s];
    double* const sums = host.data() + loss_sums(input_, static_cast<Size>(s));
    sums[0] = parts.predictions;
    for (std::size_t t = 0; t < parts.layers.size(); ++t) {
      const auto first = std::find(terms_.of_sum.begin(), terms_.of_sum.end(), t);
      sums[1 + (first - terms_.of_sum.begin())] = parts.layers[t];
    }
  }
  Kokkos::deep_copy(losses_, host);
}

double StepSums::take_solution_error() {
  ranks_.all_reduce(errors_);
  const std::vector<double> squares = take(errors_);
  return std::sqrt(squares[0] / squares[1]);
}

std::vector<double> StepSums::take_own_routing() { return take(routing_); }

double StepSums::take_weight(Size samples) {
  if (!input_.model.ignore_index) return 1;
  const Vector<double> total = alias_vector(evaluated_.data(), 1);
  ranks_.all_reduce(total);
  const double counted = take(total)[0];
  return counted > 0 ? static_cast<double>(input_.loss_count(samples)) / counted : 1;
}

}  // namespace tessera
