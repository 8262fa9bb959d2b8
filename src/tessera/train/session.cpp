// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include <tessera/base/allocation_tracker.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/optim/schedule.hpp>
#include <tessera/process/progress.hpp>
#include <tessera/train/session.hpp>

namespace tessera {
namespace {

/// Returns the peak device memory that the library allocates in `f`.
template <class F>
Size peak_of(const F& f) {
  const AllocationScope allocations("tessera::", MemSpace::name());
  f();
  return allocations.peak_bytes();
}

/// Returns true if `rank` is the first of the ranks that hold the same term of a sum over `ranks`.
bool adds_term(const MeshShape& mesh, AxisSet ranks, Size rank) {
  return mesh.coordinate(rank, mesh.all_axes() - ranks) == 0;
}

}  // namespace

std::vector<NamedNumber> named_parts(const PlanInput& input, const LossParts& parts) {
  const LossTerms terms = loss_terms_of(input.model);
  if (terms.all.empty()) return {};
  std::vector<NamedNumber> named{{name_of(input.loss), parts.predictions}};
  for (std::size_t t = 0; t < parts.layers.size(); ++t)
    named.emplace_back(terms.all[t].name, parts.layers[t]);
  return named;
}

template <class T>
TrainingData<T> make_data(const Plan& plan, Size rank, const DataConfig& config) {
  TrainingData<T> data{Dataset<T>::generate(plan, rank, config)};
  if (plan.input.validation_samples > 0)
    data.validation = Dataset<T>::validation(plan, rank, config);
  return data;
}

template <class T>
TrainingSession<T>::TrainingSession(const TrainingConfig& training, const Plan& plan,
                                    const Mesh& mesh, const MakeData& make_data)
    : training_(training),
      mesh_(mesh),
      plan_(plan),
      last_plan_(plan_last_batch(plan, plan.input.samples)),
      last_validation_plan_(plan_last_batch(plan, plan.input.validation_samples)),
      report_sums_("tessera::report", report_values + reported_sums(plan.input.model)) {
  const Activity activity("setting up the model");
  // All ranks make the communicators together before one of them can fail.
  const PlanCommunicators communicators(plan, mesh_);
  engine_bytes_ = peak_of([&] {
    collectively(mesh_.world(), [&] {
      engine_.emplace(plan, mesh_, StepOptions::of(training_));
      if (plan.input.check_replicas_every > 0) replica_check_.emplace(plan, mesh_, *engine_);
      if (plan.input.hashes_steps) hashes_.emplace(plan, mesh_, *engine_);
    });
  });
  make(make_data);
}

template <class T>
void TrainingSession<T>::change_data(const Plan& plan, const MakeData& make_data) {
  plan_ = plan;
  last_plan_ = plan_last_batch(plan, plan.input.samples);
  last_validation_plan_ = plan_last_batch(plan, plan.input.validation_samples);
  next_batch_ = reported_batches_ = 0;  // an error or a signal may have ended the last epoch
  first_step_ = steps_;
  engine_bytes_ += engine_->change_samples(plan.input.samples, plan.input.validation_samples);
  make(make_data);
}

template <class T>
void TrainingSession<T>::make(const MakeData& make) {
  const Activity activity("making or reading samples");
  data_.reset();
  data_bytes_ = peak_of([&] { collectively(mesh_.world(), [&] { data_.emplace(make(plan_)); }); });
  const auto batches = [&](Size number, const Plan& last) {
    std::vector<Size> samples(number, plan_.input.batch_size);
    if (number > 0) samples.back() = last.input.batch_size;
    return samples;
  };
  global_samples_ = batches(data().num_batches(), last_plan_);
  validation_samples_ = batches(plan_.input.validation_batches(), last_validation_plan_);
}

/// Returns the number of the order in which the present epoch takes the samples. An epoch on
/// earlier data counts, even if it did not end.
template <class T>
Size TrainingSession<T>::order_of_samples() const {
  const Size batches = data().num_batches();
  return (first_step_ + batches - 1) / batches + (steps_ - first_step_) / batches;
}

template <class T>
void TrainingSession<T>::step(Size batch) {
  const double rate = learning_rate_at(training_.schedule, training_.learning_rate, steps_);
  engine_->step(data().batch(batch, order_of_samples()), batch, rate);
  ++steps_;
  ++(batch + 1 == data().num_batches() ? last_steps_since_ : since_.steps);
  samples_since_ += global_samples_[batch];
  if (!replica_check_ || steps_ % training_.check_replicas_every != 0) return;
  ++since_.checks;
  (*replica_check_)(steps_);
}

template <class T>
std::vector<double> TrainingSession<T>::run_epoch(const std::function<bool()>& go_on) {
  while (next_batch_ < data().num_batches()) {
    step(next_batch_++);
    if (go_on && !go_on() && next_batch_ < data().num_batches()) return {};
  }
  next_batch_ = 0;
  ++since_.epochs;
  std::vector<double> means;
  epoch_parts_ = {};
  const std::vector<LossParts> losses = engine_->sums().take_losses(global_samples_, 0);
  const Size per_sample = plan_.input.loss_count(1);
  for (std::size_t b = 0; b < losses.size(); ++b) {
    means.push_back(losses[b].total());
    epoch_parts_.add(losses[b], 1 / static_cast<double>(losses.size()));
    if (static_cast<Size>(b) < reported_batches_) continue;
    const Size count = per_sample * global_samples_[b];
    finished_losses_.add(losses[b], static_cast<double>(count));
    finished_loss_count_ += count;
  }
  reported_batches_ = 0;
  return means;
}

template <class T>
std::pair<StepReport, double> TrainingSession<T>::report(double wish) {
  ++since_.reports;
  const Range batches{reported_batches_, next_batch_ - reported_batches_};
  StepReport report{.step = steps_,
                    .loss_sum = std::exchange(finished_losses_, {}),
                    .loss_count = std::exchange(finished_loss_count_, 0),
                    .samples = samples_since_ - std::exchange(reported_samples_, samples_since_)};
  for (Size b = batches.begin; b < batches.end(); ++b)
    report.loss_count += plan_.input.loss_count(global_samples_[b]);
  reported_batches_ = next_batch_;
  const MeshShape& mesh = mesh_.shape();
  const bool adds_loss = adds_term(mesh, loss_axes(mesh), mesh_.rank()),
             adds_norm = adds_term(mesh, state_axes(plan_.input, mesh), mesh_.rank());
  const LossParts own = engine_->sums().own_losses(batches);
  const Size terms = static_cast<Size>(own.layers.size());
  report_sums_(0) = adds_loss ? own.predictions : 0;
  report_sums_(1) = adds_norm ? engine_->own_squared_norm() : 0;
  report_sums_(2) = wish;
  std::vector<double> more = own.layers;
  const std::vector<double> routing = engine_->sums().take_own_routing();
  more.insert(more.end(), routing.begin(), routing.end());
  for (std::size_t i = 0; i < more.size(); ++i)
    report_sums_(report_values + i) = adds_loss ? more[i] : 0;
  engine_->communicators()[mesh.all_axes()].all_reduce(report_sums_);
  const double* const sums = report_sums_.data() + report_values;
  report.loss_sum.add({report_sums_(0), {sums, sums + terms}});
  report.routing.assign(sums + terms, sums + reported_sums(plan_.input.model));
  report.gradient_norm = std::sqrt(report_sums_(1));
  report.learning_rate = learning_rate_at(training_.schedule, training_.learning_rate, steps_ - 1);
  return {report, report_sums_(2)};
}

template <class T>
std::pair<std::vector<std::string>, std::vector<std::uint64_t>> TrainingSession<T>::hashes() {
  ++since_.hashes;
  const Size batches = data().num_batches();
  return {hashes_->names(), (*hashes_)((next_batch_ + batches - 1) % batches)};
}

template <class T>
std::vector<LossParts> TrainingSession<T>::losses_for_checkpoint() {
  ++since_.checkpoints;
  return engine_->sums().first_loss_sums(next_batch_);
}

template <class T>
void TrainingSession<T>::resume(const TrainingState& state) {
  steps_ = state.step;
  first_step_ = steps_ - state.epoch() * data().num_batches() - state.batch();
  next_batch_ = reported_batches_ = state.batch();
  const std::size_t terms = loss_terms_of(plan_.input.model).all.size();
  std::vector<double> layers = state.layer_losses_so_far;
  layers.resize(state.losses_so_far.size() * terms);  // files of version 2 have sums of all parts
  std::vector<LossParts> losses;
  for (std::size_t b = 0; b < state.losses_so_far.size(); ++b)
    losses.push_back(
        {state.losses_so_far[b], {layers.data() + b * terms, layers.data() + (b + 1) * terms}});
  engine_->resume(state.step, state.loss_scale, losses);
}

template <class T>
std::vector<double> TrainingSession<T>::losses() {
  std::vector<double> means;
  for (const LossParts& loss : engine_->sums().take_losses(global_samples_, 0))
    means.push_back(loss.total());
  return means;
}

template <class T>
bool TrainingSession<T>::validates_after(Size epoch) const {
  return data_->validation &&
         (epoch % training_.validate_every == 0 || epoch == training_.num_epochs);
}

template <class T>
Validation TrainingSession<T>::validate() {
  const Activity activity("validating");
  const Size first_slot = plan_.steps_per_epoch();
  for (Size k = 0; k < data_->validation->num_batches(); ++k)
    engine_->evaluate(data_->validation->batch(k), first_slot + k, {});
  ++since_.validations;
  const Size samples = plan_.input.validation_samples;
  LossParts mean;
  engine_->sums().add_to_mean(mean, samples, validation_samples_, first_slot);
  mean.predictions *= engine_->sums().take_weight(samples);
  Validation result{.loss = validation_loss(plan_.input.model, mean),
                    .parts = named_parts(plan_.input, mean)};
  if (plan_.input.compares_solutions())
    result.solution_error = engine_->sums().take_solution_error();
  return result;
}

template <class T>
Size TrainingSession<T>::planned_bytes() const {
  const MemoryPlan memory = plan_.memory(mesh_.rank());
  return memory.total() - (data().owns_memory() ? 0 : memory.data);
}

template <class T>
void TrainingSession<T>::begin_traffic() {
  mesh_.world().ledger().reset();
  since_ = {};
  last_steps_since_ = samples_since_ = reported_samples_ = finished_loss_count_ = 0;
  finished_losses_ = {};
}

template <class T>
std::vector<LedgerRow> TrainingSession<T>::planned_traffic() const {
  PlannedRun full = since_;
  full.plan = &plan_;
  full.evaluated_batches = full.validations * (plan_.input.validation_batches() - 1);
  return tessera::planned_traffic(
      {full,
       {.plan = &last_plan_, .steps = last_steps_since_},
       {.plan = &last_validation_plan_, .evaluated_batches = full.validations}},
      mesh_.rank());
}

template TrainingData<float> make_data(const Plan&, Size, const DataConfig&);
template TrainingData<double> make_data(const Plan&, Size, const DataConfig&);
TESSERA_INSTANTIATE_CLASS(TrainingSession);

}  // namespace tessera
