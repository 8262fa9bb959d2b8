// SPDX-License-Identifier: Apache-2.0
#include "run/reference_run.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>

#include "measure/case_run.hpp"
#include "results/documents.hpp"
#include "run/loss_verdict.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// Trains on communicators of one study, within the time of one case.
class ReferenceRuns {
 public:
  ReferenceRuns(const Communicator& ranks, const Study& study) : ranks_(ranks), study_(study) {}

  /// Losses of a run on the first ranks, the same on all. Collective.
  Json losses_of(const PlainRun& run, const std::optional<Size>& steps) const {
    const bool is_inside = ranks_.rank() < run.ranks;
    const Communicator part = ranks_.split(is_inside ? 0 : 1, ranks_.rank(), "reference");
    Json losses;
    collectively(ranks_, [&] {
      if (!is_inside) return;
      losses = with_compute_type(compute_type(run.config), [&](auto t) {
        CaseRun<decltype(t)> training(run.config, part);
        return losses_json(training.train([&] { check_time(part); }, steps).losses);
      });
    });
    return broadcast_json(ranks_, losses);
  }

  Json run_trial(const Trial& trial) const {
    const Json fewer = losses_of(trial.fewer, {}).at("steps"),
               more = losses_of(trial.more, {}).at("steps");
    const double tolerance = loss_tolerance(trial.more.config, study_.verify.tolerance);
    double difference = more.size() == fewer.size() ? 0 : INFINITY;
    for (std::size_t i = 0; i < std::min(more.size(), fewer.size()); ++i)
      difference = std::max(difference, relative_difference(more[i], fewer[i]));
    if (!(difference <= tolerance))
      throw Error(
          ExitCode::wrong_result,
          fmt::format("a trial on {} differs from that on {}: relative difference {:.1e}, "
                      "tolerance {:.0e}",
                      counted(trial.more.ranks, "rank"), trial.fewer.ranks, difference, tolerance));
    return {{"schema_version", 1},
            {"name", trial.name},
            {"ranks", {trial.fewer.ranks, trial.more.ranks}},
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
        throw Error(ExitCode::timeout, fmt::format("took longer than the limit of {:g} s",
                                                   study_.limits.case_seconds));
    });
  }

  const Communicator& ranks_;
  const Study& study_;
  Timer clock_;
};

}  // namespace

Json run_reference(const ReferencePlan& plan, const Json& trials, const Communicator& ranks,
                   const Study& study) {
  const ReferenceRuns runs(ranks, study);
  const TrainingConfig& training = plan.run.config.training;
  Json made = Json::array(), chain = Json::array();
  for (const Trial& trial : plan.trials) {
    chain.push_back(trial.name);
    if (std::find(trials.begin(), trials.end(), trial.name) != trials.end())
      made.push_back(runs.run_trial(trial));
  }
  const Json losses = runs.losses_of(plan.run, study.verify.steps);
  return {{"made_trials", made},
          {"document",
           {{"schema_version", 1},
            {"ranks", plan.run.ranks},
            {"strategy", training.distributed.strategy},
            {"microbatches", training.microbatches},
            {"asked_steps", study.verify.steps ? Json(*study.verify.steps) : Json()},
            {"trials", chain},
            {"seconds", runs.seconds()},
            {"losses", losses}}}};
}

}  // namespace tessera::bench
