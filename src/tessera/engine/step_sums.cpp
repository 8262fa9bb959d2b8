// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <tessera/base/alias.hpp>
#include <tessera/engine/step_sums.hpp>

namespace tessera {

StepSums::StepSums(const PlanInput& input, const StagePlan& stage,
                   const PlanCommunicators& communicators)
    : input_(input),
      ranks_(communicators[RankSet::loss]),
      places_(plan_sums(input, stage)),
      sums_(allocate_zeros<double>("tessera::sums", places_.total())),
      host_(Kokkos::create_mirror_view(sums_)) {}

Size StepSums::resize(const StagePlan& stage) {
  const Size before = places_.total();
  places_ = plan_sums(input_, stage);
  if (places_.total() == before) return 0;
  sums_ = {};
  sums_ = allocate_zeros<double>("tessera::sums", places_.total());
  host_ = Kokkos::create_mirror_view(sums_);
  return (places_.total() - before) * size_of(DType::float64);
}

Vector<double> StepSums::run(Size first, Size count) const {
  return alias_vector(sums_.data() + first, count);
}

void StepSums::fetch(const Vector<double>& sums) {
  ranks_.all_reduce(sums);
  Kokkos::deep_copy(host_, sums_);
}

void StepSums::clear(const Vector<double>& sums) { Kokkos::deep_copy(ExecSpace(), sums, 0.0); }

std::vector<MeanLoss> StepSums::take_losses(const std::vector<Size>& global_samples, Size first) {
  const auto batches = static_cast<Size>(global_samples.size());
  const Vector<double> sums = run(first * per_batch(), batches * per_batch());
  fetch(sums);
  std::vector<MeanLoss> losses(global_samples.size());
  for (Size b = 0; b < batches; ++b) {
    for (Size i = 0; i < per_batch(); ++i) {
      const double sum = host_((first + b) * per_batch() + i);
      losses[b].total += sum;
      if (i % input_.loss_terms() > 0) losses[b].layers += sum;
    }
    losses[b].total /= static_cast<double>(input_.loss_count(global_samples[b]));
    losses[b].layers /= static_cast<double>(input_.loss_count(global_samples[b]));
  }
  clear(sums);
  return losses;
}

double StepSums::own_losses(const Range& batches) const {
  const Range part{batches.begin * per_batch(), batches.count * per_batch()};
  const auto host =
      Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), run(part.begin, part.count));
  double sum = 0;
  for (Size i = 0; i < part.count; ++i) sum += host(i);
  return sum;
}

std::vector<double> StepSums::first_loss_sums(Size steps) const {
  const Vector<double> sums = allocate_vector<double>("tessera::first_loss_sums", places_.losses);
  Kokkos::deep_copy(sums, run(0, places_.losses));
  ranks_.all_reduce(sums);
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), sums);
  std::vector<double> losses(steps);
  for (Size s = 0; s < steps; ++s)
    for (Size i = 0; i < per_batch(); ++i) losses[s] += host(s * per_batch() + i);
  return losses;
}

void StepSums::set_first_loss_sums(const std::vector<double>& first_loss_sums) {
  // take_losses() adds over ranks, so one rank holds the sum and the others zero.
  if (ranks_.rank() != 0) return;
  Kokkos::deep_copy(host_, sums_);
  for (std::size_t s = 0; s < first_loss_sums.size(); ++s)
    host_(static_cast<Size>(s) * per_batch()) = first_loss_sums[s];
  Kokkos::deep_copy(sums_, host_);
}

double StepSums::take_solution_error() {
  const Size first = places_.first_error();
  const Vector<double> sums = run(first, places_.errors);
  fetch(sums);
  const double error = std::sqrt(host_(first) / host_(first + 1));
  clear(sums);
  return error;
}

std::vector<double> StepSums::take_own_routing() {
  const Vector<double> sums = run(places_.first_routing(), places_.routing);
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), sums);
  std::vector<double> taken(host.data(), host.data() + places_.routing);
  clear(sums);
  return taken;
}

double StepSums::take_weight(Size samples) {
  if (!input_.model.ignore_index) return 1;
  const Size at = places_.first_count() + 1;
  const Vector<double> sums = run(at, 1);
  fetch(sums);
  const double counted = host_(at);
  clear(sums);
  return counted > 0 ? static_cast<double>(input_.loss_count(samples)) / counted : 1;
}

}  // namespace tessera
