// SPDX-License-Identifier: Apache-2.0
// The engine's losses: of a batch, and of all batches of an epoch or of a validation.
#include <cmath>

#include <tessera/base/alias.hpp>
#include <tessera/base/region.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/nn/loss.hpp>

namespace tessera {

/// A prediction, or targets, in the rows that the loss counts.
template <class T>
template <class E>
Matrix<const E> Engine<T>::as_loss_sees(const Matrix<const E>& all,
                                        const Microbatch<State>& batch) const {
  const LossShape shape =
      loss_shape(plan_.input.loss, batch.samples, plan_.input.model.output_positions(),
                 static_cast<Size>(all.extent(1)));
  return alias_matrix(all.data(), shape.rows, shape.cols);
}

/// What the batch's sum of losses is divided by.
template <class T>
Size Engine<T>::loss_divisor(const Microbatch<State>& batch) const {
  return options_.sum_gradients ? 1 : plan_.input.loss_count(batch.global_samples);
}

template <class T>
Size Engine<T>::loss_slot(const Microbatch<State>& batch, Size slot) const {
  return (slot * plan_.input.microbatches + batch.number) * plan_.input.loss_terms();
}

template <class T>
void Engine<T>::loss_terms(const Action& action, const Microbatch<State>& batch) const {
  const auto prediction = frame_.read(action.reads[0], batch);
  const auto terms = frame_.sums(action.writes[0], batch);
  MemoryGuard guard;
  close_arenas(guard);
  guard.open(prediction), guard.open(terms);
  cross_entropy_terms<Compute>(prediction, batch.y, layers_.back().first, terms);
}

template <class T>
void Engine<T>::loss(const Action& action, const Microbatch<State>& batch, Size slot,
                     bool gradient) {
  const Region region("tessera::loss");
  const auto prediction = as_loss_sees(frame_.read(action.reads[0], batch), batch);
  LossDetails<State> details{loss_scale_.value(), options_.boundary_weight};
  if (action.reads.size() > 2) {
    details.first_class = layers_.back().first;
    details.classes = plan_.input.model.output_width();
    details.terms = frame_.sums(action.reads[2], batch);
  }
  const Matrix<Compute> derivative = gradient ? frame_(action.writes[0], batch) : Matrix<Compute>();
  MemoryGuard guard;
  close_arenas(guard);
  guard.open(prediction), guard.open(details.terms), guard.open(derivative);
  loss_and_gradient<Compute>(plan_.input.loss, prediction, as_loss_sees(batch.y, batch),
                             loss_divisor(batch), sums_, loss_slot(batch, slot), derivative,
                             details);
}

template <class T>
void Engine<T>::evaluate(const Batch<State>& batch, Size slot, const TakePrediction& take) {
  const Region region("tessera::evaluate");
  const auto evaluate_action = [&](std::size_t number, Size microbatch) {
    const Action& action = stage_->evaluation[number];
    const Microbatch<State> part = microbatch_of(batch, microbatch);
    if (action.kind != ActionKind::loss)
      return act(action, evaluation_operands_[number], part, slot, 0);
    loss(action, part, slot, false);
    if (sums_plan_.errors > 0 && slot >= plan_.steps_per_epoch())
      add_solution_error<Compute>(as_loss_sees(frame_.read(action.reads[0], part), part),
                                  as_loss_sees(part.y, part), sums_, sums_plan_.first_error());
    if (take) take(part, frame_.read(action.reads[0], part));
  };
  for_each_action(stage_->evaluation, stage_->evaluation_repeated, evaluate_action);
}

template <class T>
Size Engine<T>::change_samples(Size samples, Size validation_samples) {
  const Size before = sums_plan_.total();
  plan_.input.samples = samples;
  plan_.input.validation_samples = validation_samples;
  sums_plan_ = plan_sums(plan_.input, *stage_);
  if (sums_plan_.total() == before) return 0;
  sums_ = {};
  sums_ = allocate_zeros<double>("tessera::sums", sums_plan_.total());
  host_sums_ = Kokkos::create_mirror_view(sums_);
  return (sums_plan_.total() - before) * size_of(DType::float64);
}

template <class T>
std::vector<double> Engine<T>::losses(const std::vector<Size>& global_samples, Size first_slot) {
  const std::size_t steps = global_samples.size();
  const Size of_step = loss_sums(plan_.input, 1), first = first_slot * of_step;
  const Vector<double> sums =
      alias_vector(sums_.data() + first, static_cast<Size>(steps) * of_step);
  communicators_[RankSet::loss].all_reduce(sums);
  Kokkos::deep_copy(host_sums_, sums_);
  std::vector<double> losses(steps);
  for (std::size_t s = 0; s < steps; ++s) {
    for (Size i = 0; i < of_step; ++i) losses[s] += host_sums_(first + s * of_step + i);
    losses[s] /= static_cast<double>(plan_.input.loss_count(global_samples[s]));
  }
  // A stage writes only the terms that its layers make.
  Kokkos::deep_copy(ExecSpace(), sums, 0.0);
  return losses;
}

template <class T>
std::vector<double> Engine<T>::losses_so_far(Size steps) {
  const Size of_step = loss_sums(plan_.input, 1);
  const Vector<double> sums = allocate_vector<double>("tessera::losses_so_far", sums_plan_.losses);
  Kokkos::deep_copy(sums, alias_vector(sums_.data(), sums_plan_.losses));
  communicators_[RankSet::loss].all_reduce(sums);
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), sums);
  std::vector<double> losses(steps);
  for (Size s = 0; s < steps; ++s)
    for (Size i = 0; i < of_step; ++i) losses[s] += host(s * of_step + i);
  return losses;
}

template <class T>
double Engine<T>::solution_error() {
  const Vector<double> sums =
      alias_vector(sums_.data() + sums_plan_.first_error(), sums_plan_.errors);
  communicators_[RankSet::loss].all_reduce(sums);
  Kokkos::deep_copy(host_sums_, sums_);
  const Size first = sums_plan_.first_error();
  const double error = std::sqrt(host_sums_(first) / host_sums_(first + 1));
  Kokkos::deep_copy(ExecSpace(), sums, 0.0);
  return error;
}

TESSERA_INSTANTIATE_CLASS(Engine);

}  // namespace tessera
