// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/allocation_tracker.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/optim/schedule.hpp>
#include <tessera/plan/traffic.hpp>
#include <tessera/train/session.hpp>

namespace tessera {
namespace {

/// The most device memory of the library's own that `f` has held.
template <class F>
Size peak_of(const F& f) {
  const AllocationScope allocations("tessera::");
  f();
  return allocations.by_space()[MemSpace::name()].peak_bytes;
}

}  // namespace

template <class T>
TrainingSession<T>::TrainingSession(const TrainingConfig& training, const Plan& plan,
                                    const Mesh& mesh, const MakeData& make_data)
    : training_(training), mesh_(mesh), plan_(plan), last_plan_(plan_last_batch(plan)) {
  // Communicators are made by all ranks together, before one of them can fail alone.
  const PlanCommunicators communicators(plan.input, mesh_);
  engine_bytes_ = peak_of([&] {
    collectively(mesh_.world(), [&] {
      engine_.emplace(plan, mesh_, StepOptions::of(training_));
      if (plan.input.check_replicas_every > 0) replicas_are_equal_.emplace(plan, mesh_, *engine_);
    });
  });
  make(make_data);
}

template <class T>
void TrainingSession<T>::change_data(const Plan& plan, const MakeData& make_data) {
  plan_ = plan;
  last_plan_ = plan_last_batch(plan);
  engine_bytes_ += engine_->change_samples(plan.input.samples);
  make(make_data);
}

template <class T>
void TrainingSession<T>::make(const MakeData& make_data) {
  data_.reset();
  data_bytes_ =
      peak_of([&] { collectively(mesh_.world(), [&] { data_.emplace(make_data(plan_)); }); });
  global_rows_.assign(static_cast<std::size_t>(data_->num_batches()), plan_.input.global_batch);
  global_rows_.back() = last_plan_.input.global_batch;
}

template <class T>
void TrainingSession<T>::step(Size batch) {
  engine_->step(data_->batch(batch), batch,
                learning_rate_at(training_.schedule, training_.learning_rate, steps_++));
  if (!replicas_are_equal_ || steps_ % training_.check_replicas_every != 0) return;
  ++checks_since_;
  (*replicas_are_equal_)(steps_);
}

template <class T>
std::vector<double> TrainingSession<T>::run_epoch(const std::function<void()>& after_step) {
  for (Size k = 0; k < data_->num_batches(); ++k) {
    step(k);
    if (after_step) after_step();
  }
  ++epochs_since_;
  return losses();
}

template <class T>
std::vector<double> TrainingSession<T>::losses() {
  return engine_->losses(global_rows_);
}

template <class T>
Size TrainingSession<T>::planned_bytes() const {
  const MemoryPlan memory = plan_.memory(mesh_.rank());
  return memory.total() - (data_->owns_memory() ? 0 : memory.data);
}

template <class T>
void TrainingSession<T>::begin_traffic() {
  mesh_.world().ledger().reset();
  epochs_since_ = checks_since_ = 0;
}

template <class T>
std::vector<LedgerRow> TrainingSession<T>::planned_traffic() const {
  const Size full = data_->num_batches() - 1;
  return tessera::planned_traffic({{&plan_, full * epochs_since_, epochs_since_, checks_since_},
                                   {&last_plan_, epochs_since_, 0, 0}},
                                  mesh_.rank());
}

template class TrainingSession<float>;
template class TrainingSession<double>;
template class TrainingSession<BFloat16>;
template class TrainingSession<Float16>;

}  // namespace tessera
