// SPDX-License-Identifier: Apache-2.0
#include "measure/case_run.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include <tessera/base/error.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/config/config_agreement.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/plan/memory_timeline.hpp>
#include <tessera/process/outcome.hpp>
#include <tessera/tensor/mesh.hpp>
#include <tessera/trace/waits.hpp>
#include <tessera/train/checkpointing.hpp>
#include <tessera/train/reporter.hpp>
#include <tessera/train/session.hpp>

#include "measure/machine_speed.hpp"
#include "measure/statistics.hpp"

namespace tessera::bench {
namespace {

using Kind = std::pair<std::string, Operation>;

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

/// Returns true if `mine` is true on every rank. Ranks along `model` compute their losses
/// separately, and no rank may leave the loop alone. The ledger does not count this call.
bool on_all_ranks(const Communicator& ranks, bool mine) {
  return conclude_json(ranks, mine, [](const std::vector<nlohmann::json>& all) {
    return std::count(all.begin(), all.end(), false) == 0;
  });
}

template <class T>
class TypedCaseRun final : public CaseRun {
 public:
  TypedCaseRun(const Config& config, const Communicator& ranks)
      : config_(resolve(config, ranks.size())),
        mesh_(ranks, resolve_mesh(config_, ranks.size())),
        session_(config_.training, make_plan(plan_input(config_, mesh_.shape())), mesh_,
                 [&](const Plan& plan) {
                   return make_data<StateOf<T>>(plan, mesh_.rank(), config_.data);
                 }),
        full_batches_(config_.data.samples / config_.training.batch_size) {
    agreed_checksums(ranks, config_.data, make_model(config_));
  }

  const Plan& plan() const override { return session_.plan(); }
  Size planned_bytes() const override { return session_.planned_bytes(); }
  Size measured_bytes() const override { return session_.measured_bytes(); }

  Verification train(const CheckTime& check_time, std::optional<Size> most_steps) override {
    Verification result;
    LossCurve& curve = result.losses;
    session_.begin_traffic();
    double stepping_seconds = 0;
    Reporter<T> reporter({.output = config_.output}, session_, config_.training.num_epochs,
                         config_.training.num_epochs);
    Size left = most_steps.value_or(std::numeric_limits<Size>::max());
    while (result.epochs < config_.training.num_epochs && left > 0) {
      const Timer stepping;
      const std::vector<double> losses = session_.run_epoch([&] {
        if (reporter.is_due())
          reporter.report(result.epochs + 1, stepping_seconds + stepping.seconds());
        check_time();
        return --left > 0;
      });
      stepping_seconds += stepping.seconds();
      if (session_.batches_done() > 0) break;
      curve.steps.insert(curve.steps.end(), losses.begin(), losses.end());
      ++result.epochs;
      curve.epochs.push_back(std::accumulate(losses.begin(), losses.end(), 0.0) /
                             static_cast<double>(losses.size()));
      if (!on_all_ranks(mesh_.world(), all_finite(losses))) break;
      if (!session_.validates_after(result.epochs)) continue;
      const Validation validation = session_.validate();
      reporter.validated(result.epochs, validation);
      curve.validations.push_back(validation.loss);
      curve.validated_at.push_back(curve.steps.size());
    }
    result.measured_traffic = session_.measured_traffic();
    result.planned_traffic = session_.planned_traffic();
    // The losses of an unfinished epoch take a call that no training makes, so the traffic is read
    // before.
    if (session_.batches_done() > 0) {
      const std::vector<double> losses = losses_of_unfinished_epoch();
      curve.steps.insert(curve.steps.end(), losses.begin(), losses.end());
    }
    return result;
  }

  void warm_up(Size steps, const CheckTime& check_time) override {
    for (Size i = 0; i < steps; ++i) {
      next_step();
      check_time();
    }
  }

  std::vector<double> time_steps(Size steps) override {
    std::vector<double> seconds(steps);
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

  bool is_finite() override { return on_all_ranks(mesh_.world(), all_finite(session_.losses())); }

  std::vector<RankTrace> instrument(Size steps) override {
    RankTrace mine;
    {
      mesh_.world().barrier();
      const RegionTimer timer;
      for (Size i = 0; i < steps; ++i) next_step();
      Kokkos::fence();
      mine = timer.trace();
    }
    mine.add_memory(measured_bytes(), memory_timeline(plan(), mesh_.rank()));
    return gather_traces(mesh_.world(), plan().input.mesh, mine);
  }

  CheckpointTimes time_checkpoints(const std::string& directory, Size checkpoints,
                                   const CheckTime& check_time) override {
    const Communicator& ranks = mesh_.world();
    CheckpointConfig config = config_.checkpoint;
    config.directory = directory;
    config.keep = 1;
    std::vector<double> written, exposed, read, steps;
    // Another launch of this case has a folder of its own.
    std::optional<CheckpointStore> own(std::in_place, config, ranks);
    const Outcome outcome = outcome_of([&] {
      CheckpointStore& store = *own;
      const Checkpointing never;
      SaveSchedule schedule(never, ranks);  // agrees on steps as a training does
      for (Size number = 1; number <= checkpoints; ++number) {
        Kokkos::fence();
        ranks.barrier();
        const SaveCosts before = store.costs();
        store.save(session_.engine(), {.step = number});
        while (config.async && !store.is_ready(schedule.written_everywhere())) {
          const Timer timer;
          next_step();
          Kokkos::fence();
          steps.push_back(timer.seconds());
          schedule.after_step(session_.steps(), store.written_saves());
          check_time();
        }
        store.finish();
        const SaveCosts after = store.costs();
        exposed.push_back(after.seconds - before.seconds);
        written.push_back(exposed.back() + after.hidden_seconds - before.hidden_seconds);
        ranks.barrier();
        const Timer timer;
        read_tensors(store.last().string(), ranks, session_.engine());
        read.push_back(timer.seconds());
        check_time();
      }
      schedule.finish();
    });
    const std::filesystem::path training = own->training();
    own.reset();  // ends its thread
    std::error_code unused;
    if (ranks.rank() == 0) {
      std::filesystem::remove_all(training, unused);
      std::filesystem::remove(directory, unused);
    }
    if (outcome.failed()) throw Error(outcome.code, outcome.message);
    Size bytes = 0;
    for (Size rank = 0; rank < ranks.size(); ++rank)
      bytes += checkpoint_bytes(plan(), rank).written;
    const auto typical = [&](const std::vector<double>& mine) {
      return mine.empty() ? NAN : median(slowest(ranks, mine));
    };
    return {.directory = config_.checkpoint.directory,
            .async = config.async,
            .checkpoints = checkpoints,
            .bytes = bytes,
            .write_seconds = typical(written),
            .exposed_seconds = typical(exposed),
            .read_seconds = typical(read),
            .steps_while_writing = static_cast<Size>(steps.size()),
            .step_seconds_while_writing = typical(steps)};
  }

 private:
  void next_step() { session_.step(session_.steps() % full_batches_); }

  /// Returns the losses of the steps of an unfinished epoch, whose batches are all full.
  std::vector<double> losses_of_unfinished_epoch() {
    const auto count = static_cast<double>(plan().input.loss_count(plan().input.batch_size));
    std::vector<double> losses;
    for (const LossParts& loss : session_.losses_for_checkpoint())
      losses.push_back(loss.total() / count);
    return losses;
  }

  Config config_;
  Mesh mesh_;
  TrainingSession<T> session_;
  Size full_batches_;  ///< per epoch
};

}  // namespace

Breakdown break_down(const std::vector<RankTrace>& ranks, Size steps) {
  const double per_step = 1 / static_cast<double>(steps);
  const double per_rank_and_step = per_step / static_cast<double>(ranks.size());
  const auto add = [&](Share& share, double seconds) {
    share.max_rank_seconds = std::max(share.max_rank_seconds, seconds * per_step);
    share.mean_rank_seconds += seconds * per_rank_and_step;
  };
  Breakdown result;
  result.steps = steps;
  std::map<Kind, CallTime> kinds;
  for (const RankTrace& rank : ranks) {
    double communication = 0, idle = 0;
    for (const TracedCall& call : rank.calls) {
      const double moving = call.seconds - call.waiting;
      communication += moving;
      idle += call.waiting;
      CallTime& total =
          kinds.try_emplace({call.axis, call.operation}, CallTime{call.axis, call.operation})
              .first->second;
      total.calls += per_rank_and_step;
      total.seconds += moving * per_rank_and_step;
      total.waiting += call.waiting * per_rank_and_step;
    }
    add(result.compute, rank.compute);
    add(result.communication, communication);
    add(result.idle, idle);
    add(result.optimizer, rank.optimizer);
    add(result.other,
        std::max(0.0, rank.step - rank.compute - rank.optimizer - communication - idle));
    add(result.products, rank.products);
    result.step_seconds += rank.step * per_rank_and_step;
  }
  for (const auto& [kind, time] : kinds) result.calls.push_back(time);
  return result;
}

std::unique_ptr<CaseRun> CaseRun::make(const Config& config, const Communicator& ranks) {
  return with_compute_type(compute_type(config), [&](auto t) -> std::unique_ptr<CaseRun> {
    return std::make_unique<TypedCaseRun<decltype(t)>>(config, ranks);
  });
}

}  // namespace tessera::bench
