// SPDX-License-Identifier: Apache-2.0
#include "run/reference_run.hpp"

#include <algorithm>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>

#include "measure/case_run.hpp"
#include "results/result_parts.hpp"
#include "run/loss_verdict.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// Trains on communicators of one study, within the time of one case.
class ReferenceRuns {
 public:
  ReferenceRuns(const Group& group, const Study& study) : group_(group), study_(study) {}

  /// Trains on the first ranks while the others sleep. Returns the losses on all ranks. Collective.
  LossCurve losses_of(const PlainRun& run, const std::optional<Size>& steps) const {
    const Communicator& ranks = group_.ranks;
    const int color = ranks.rank() < run.ranks ? 0 : 1;
    const Group part{ranks.split(color, ranks.rank(), "reference"),
                     split_raw(group_.raw.get(), color, ranks.rank())};
    Json losses;
    Outcome outcome;
    if (color == 0)
      outcome = run_on_group(part, study_.limits, [&] {
        losses = CaseRun::make(run.config, part.ranks)
                     ->train([&] { check_time(part.ranks); }, steps)
                     .losses;
      });
    sleep_until_all_arrive(study_.limits, group_.raw.get());
    collectively(ranks, [&] {
      if (outcome.failed()) throw Error(outcome.code, outcome.message);
    });
    return broadcast_json(ranks, losses).get<LossCurve>();
  }

  Json run_trial(const Trial& trial) const {
    const std::vector<double> fewer = losses_of(trial.fewer, {}).steps,
                              more = losses_of(trial.more, {}).steps;
    const double tolerance = loss_tolerance(trial.more.config, study_.verify.tolerance);
    double difference = more.size() == fewer.size() ? 0 : INFINITY;
    for (std::size_t i = 0; i < std::min(more.size(), fewer.size()); ++i)
      difference = std::max(difference, relative_difference(more[i], fewer[i]));
    if (!(difference <= tolerance))
      throw Error(ExitCode::wrong_result,
                  "a trial on {} differs from that on {}: relative difference {:.1e}, "
                  "tolerance {:.0e}",
                  counted(trial.more.ranks, "rank"), trial.fewer.ranks, difference, tolerance);
    return {{"ranks", {trial.fewer.ranks, trial.more.ranks}},
            {"global_batch", trial.more.config.training.batch_size},
            {"steps", more.size()},
            {"tolerance", tolerance},
            {"largest_relative_difference", difference}};
  }

  double seconds() const { return clock_.seconds(); }

 private:
  void check_time(const Communicator& part) const {
    collectively(part, [&] {
      if (clock_.seconds() > study_.limits.case_seconds)
        throw Error(ExitCode::timeout, "took longer than the limit of {:g} s",
                    study_.limits.case_seconds);
    });
  }

  const Group& group_;
  const Study& study_;
  Timer clock_;
};

}  // namespace

Reference run_reference(const ReferencePlan& plan, const Group& group, const Study& study) {
  const ReferenceRuns runs(group, study);
  const TrainingConfig& training = plan.run.config.training;
  Reference reference;
  for (const Trial& trial : plan.trials) reference.trials.push_back(runs.run_trial(trial));
  reference.losses = runs.losses_of(plan.run, study.verify.steps);
  reference.ranks = plan.run.ranks;
  reference.strategy = name_of(training.distributed.strategy);
  reference.microbatches = training.microbatches;
  reference.asked_steps = study.verify.steps;
  reference.seconds = runs.seconds();
  return reference;
}

}  // namespace tessera::bench
