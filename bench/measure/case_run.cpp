// SPDX-License-Identifier: Apache-2.0
#include "measure/case_run.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <tessera/base/allocation_tracker.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/engine/step_options.hpp>
#include <tessera/optim/schedule.hpp>
#include <tessera/plan/last_batch.hpp>
#include <tessera/plan/traffic.hpp>

namespace tessera::bench {
namespace {

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

/// Whether it is so on every rank: those along `model` have computed their losses apart, and none
/// may leave alone. Nothing of it is in the ledger.
bool on_all_ranks(const Communicator& ranks, bool mine) {
  try {
    collectively(ranks, [&] {
      if (!mine) throw Error(ExitCode::wrong_result, "");
    });
  } catch (const Error& error) {
    if (error.code() != ExitCode::wrong_result) throw;
    return false;
  }
  return true;
}

}  // namespace

template <class T>
CaseRun<T>::CaseRun(const Config& config, const Communicator& ranks)
    : config_(resolve(config, ranks.size())),
      mesh_(ranks, resolve_mesh(config_, ranks.size())),
      plan_(make_plan(plan_input(config_, mesh_.shape()))),
      last_plan_(plan_last_batch(plan_)),
      full_batches_(config_.data.samples / config_.training.batch_size) {
  // The engine's communicators are made by all ranks together, before one of them can fail alone.
  const Groups groups(plan_.input, mesh_);
  const AllocationScope allocations("tessera::");
  collectively(ranks, [&] {
    data_.emplace(Dataset<T>::generate(plan_, mesh_.rank(), config_.data));
    engine_.emplace(plan_, mesh_, step_options(config_.training));
  });
  measured_bytes_ = allocations.by_space()[MemSpace::name()].peak_bytes;
}

template <class T>
void CaseRun<T>::step(const Plan& plan, Size batch) {
  const TrainingConfig& training = config_.training;
  engine_->step(plan, data_->batch(batch), batch,
                learning_rate_at(training.schedule, training.learning_rate, steps_++));
}

template <class T>
void CaseRun<T>::next_step() {
  step(plan_, steps_ % full_batches_);
}

template <class T>
Verification CaseRun<T>::train(const CheckTime& check_time) {
  const Size batches = data_->num_batches();
  std::vector<Size> rows(static_cast<std::size_t>(batches), plan_.input.global_batch);
  rows.back() = last_plan_.input.global_batch;
  Verification result;
  mesh_.world().ledger().reset();
  while (result.epochs < config_.training.num_epochs) {
    for (Size k = 0; k < batches; ++k) {
      step(k + 1 == batches ? last_plan_ : plan_, k);
      check_time();
    }
    const std::vector<double> losses = engine_->losses(rows);
    ++result.epochs;
    result.losses.steps.insert(result.losses.steps.end(), losses.begin(), losses.end());
    result.losses.epochs.push_back(std::accumulate(losses.begin(), losses.end(), 0.0) /
                                   static_cast<double>(batches));
    if (!on_all_ranks(mesh_.world(), all_finite(losses))) break;
  }
  result.measured_traffic = mesh_.world().ledger().rows();
  result.planned_traffic = planned_traffic(
      {{&plan_, (batches - 1) * result.epochs, result.epochs}, {&last_plan_, result.epochs, 0}},
      mesh_.rank());
  return result;
}

template <class T>
void CaseRun<T>::warm_up(Size steps, const CheckTime& check_time) {
  for (Size i = 0; i < steps; ++i) {
    next_step();
    check_time();
  }
}

template <class T>
std::vector<double> CaseRun<T>::time_steps(Size steps) {
  std::vector<double> seconds(static_cast<std::size_t>(steps));
  Kokkos::fence();
  mesh_.world().barrier();
  for (double& taken : seconds) {
    const Timer timer;
    next_step();
    Kokkos::fence();
    taken = timer.seconds();
  }
  return seconds;
}

template <class T>
bool CaseRun<T>::is_finite() {
  const Size batches = data_->num_batches();
  std::vector<Size> rows(static_cast<std::size_t>(batches), plan_.input.global_batch);
  rows.back() = last_plan_.input.global_batch;
  return on_all_ranks(mesh_.world(), all_finite(engine_->losses(rows)));
}

template <class T>
std::vector<RankTrace> CaseRun<T>::instrument(Size steps) {
  nlohmann::json mine;
  {
    mesh_.world().barrier();
    const RegionTimer timer;
    for (Size i = 0; i < steps; ++i) next_step();
    Kokkos::fence();
    mine = timer.trace();
  }
  std::vector<RankTrace> ranks;
  for (const nlohmann::json& trace : gather_json(mesh_.world(), mine))
    ranks.push_back(trace.get<RankTrace>());
  return ranks;
}

template class CaseRun<float>;
template class CaseRun<double>;

}  // namespace tessera::bench
