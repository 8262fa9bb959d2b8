// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

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

StepSums::StepSums(const PlanInput& input, const StagePlan& stage,
                   const PlanCommunicators& communicators)
    : input_(input),
      terms_(loss_terms_of(input.model)),
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

LossParts StepSums::parts_of(const double* sums, Size batches) const {
  LossParts parts{0, std::vector<double>(terms_.all.size())};
  const Size terms = input_.loss_terms();
  for (Size i = 0; i < batches * per_batch(); ++i) {
    const Size term = i % terms;
    double& part = term == 0 ? parts.predictions : parts.layers[terms_.of_sum[term - 1]];
    part += sums[i];
  }
  return parts;
}

std::vector<LossParts> StepSums::take_losses(const std::vector<Size>& global_samples, Size first) {
  const auto batches = static_cast<Size>(global_samples.size());
  const Vector<double> sums = run(first * per_batch(), batches * per_batch());
  fetch(sums);
  std::vector<LossParts> losses;
  for (Size b = 0; b < batches; ++b) {
    LossParts& loss = losses.emplace_back(parts_of(host_.data() + (first + b) * per_batch()));
    const auto count = static_cast<double>(input_.loss_count(global_samples[b]));
    loss.predictions /= count;
    for (double& part : loss.layers) part /= count;
  }
  clear(sums);
  return losses;
}

LossParts StepSums::own_losses(const Range& batches) const {
  const Range part{batches.begin * per_batch(), batches.count * per_batch()};
  const auto host =
      Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), run(part.begin, part.count));
  return parts_of(host.data(), batches.count);
}

std::vector<LossParts> StepSums::first_loss_sums(Size steps) const {
  const Vector<double> sums = allocate_vector<double>("tessera::first_loss_sums", places_.losses);
  Kokkos::deep_copy(sums, run(0, places_.losses));
  ranks_.all_reduce(sums);
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), sums);
  std::vector<LossParts> losses;
  for (Size s = 0; s < steps; ++s) losses.push_back(parts_of(host.data() + s * per_batch()));
  return losses;
}

void StepSums::set_first_loss_sums(const std::vector<LossParts>& first_loss_sums) {
  // take_losses() adds over ranks, so one rank holds the sums and the others zero. The first of the
  // layers with a term holds that of all.
  if (ranks_.rank() != 0) return;
  Kokkos::deep_copy(host_, sums_);
  for (std::size_t s = 0; s < first_loss_sums.size(); ++s) {
    const LossParts& parts = first_loss_sums[s];
    double* const sums = host_.data() + static_cast<Size>(s) * per_batch();
    sums[0] = parts.predictions;
    for (std::size_t t = 0; t < parts.layers.size(); ++t) {
      const auto first = std::find(terms_.of_sum.begin(), terms_.of_sum.end(), t);
      sums[1 + (first - terms_.of_sum.begin())] = parts.layers[t];
    }
  }
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
