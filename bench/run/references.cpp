// SPDX-License-Identifier: Apache-2.0
#include "run/references.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/process/progress.hpp>

#include "results/result_parts.hpp"
#include "run/group.hpp"

namespace tessera::bench {
namespace {

/// Returns |value - wanted| / |wanted|, or infinity if one of them is not finite.
double relative_difference(double value, double wanted) {
  const double relative = std::abs(value - wanted) / std::max(std::abs(wanted), 1e-30);
  return std::isfinite(relative) ? relative : INFINITY;
}

/// The step or validation at which losses differ most.
struct LossDifference {
  double relative = 0;
  std::size_t at = 0;  ///< counted from 0
  double value = 0, wanted = 0;
};

/// `reference` has at least as many losses.
LossDifference largest_difference(const std::vector<double>& losses,
                                  const std::vector<double>& reference) {
  LossDifference largest;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double relative = relative_difference(losses[i], reference[i]);
    if (i == 0 || relative > largest.relative) largest = {relative, i, losses[i], reference[i]};
  }
  return largest;
}

using Json = nlohmann::json;

/// The ranks that train a reference, within the time of one case.
struct ReferenceRuns {
  const Group& group;
  const Limits& limits;
  Timer clock{};

  /// Trains on the first ranks while the others sleep. Returns the losses on all ranks. Collective.
  LossCurve losses_of(const PlainRun& run, const std::optional<Size>& steps) const {
    const Communicator& ranks = group.ranks;
    const Group part = first_ranks(ranks, group.raw.get(), run.ranks, "reference");
    Json losses;
    Outcome outcome;
    if (ranks.rank() < run.ranks)
      outcome = run_on_group(part, limits, [&] {
        losses = CaseRun::make(run.config, part.ranks)
                     ->train([&] { check_time(part.ranks, clock.seconds(), limits); }, steps)
                     .losses;
      });
    sleep_until_all_arrive(limits, group.raw.get());
    collectively(ranks, [&] {
      if (outcome.failed()) throw Error(outcome.code, outcome.message);
    });
    return broadcast_json(ranks, losses).get<LossCurve>();
  }

  Json run_trial(const Trial& trial, double asked_tolerance) const {
    const std::vector<double> fewer = losses_of(trial.fewer, {}).steps,
                              more = losses_of(trial.more, {}).steps;
    const double tolerance = loss_tolerance(trial.more.config, asked_tolerance);
    const double difference =
        more.size() == fewer.size() ? largest_difference(more, fewer).relative : INFINITY;
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
};

/// Runs the trials, then the reference. Throws Error (wrong_result) on all ranks if a trial's
/// losses differ, Error (timeout) if it takes longer than a case may. Collective over the group,
/// which has as many ranks as the plan.
Reference run_reference(const ReferencePlan& plan, const Group& group, const Study& study) {
  const ReferenceRuns runs{group, study.limits};
  const TrainingConfig& training = plan.run.config.training;
  Reference reference;
  for (const Trial& trial : plan.trials)
    reference.trials.push_back(runs.run_trial(trial, study.verify.tolerance));
  reference.losses = runs.losses_of(plan.run, study.verify.steps);
  reference.ranks = plan.run.ranks;
  reference.strategy = name_of(training.distributed.strategy);
  reference.microbatches = training.microbatches;
  reference.asked_steps = study.verify.steps;
  reference.seconds = runs.clock.seconds();
  return reference;
}

FoundReference failed_reference(const Outcome& outcome, Size ranks) {
  FoundReference failed;
  if (outcome.code == ExitCode::out_of_memory)
    failed.problem = counted(ranks, "rank") + ": " + outcome.message;
  else
    failed.failure = {outcome.code, "its reference: " + outcome.message};
  return failed;
}

}  // namespace

double loss_tolerance(const Config& config, double asked) {
  if (config.training.numerics.reproducible) return asked;
  switch (compute_type(config)) {
    case DType::bfloat16:
      return std::max(asked, 0x1p-8);
    case DType::float16:
      return std::max(asked, 0x1p-11);
    default:
      return asked;
  }
}

LossVerdict judge_losses(const Verification& verification, const FoundReference& reference,
                         const std::string& reference_name, double tolerance) {
  const LossCurve& losses = verification.losses;
  const std::vector<double>& steps = losses.steps;
  LossResult loss;
  loss.tolerance = tolerance;
  loss.epochs = verification.epochs;
  loss.steps = static_cast<Size>(steps.size());
  loss.step_losses = steps;
  loss.epoch_losses = losses.epochs;
  loss.validation_losses = losses.validations;
  loss.validated_at_steps = losses.validated_at;
  loss.reference = reference_name;
  loss.problem = reference.problem;
  if (reference.losses) {
    loss.reference_step_losses = reference.losses->steps;
    loss.reference_epoch_losses = reference.losses->epochs;
    loss.reference_validation_losses = reference.losses->validations;
    loss.reference_ranks = reference.ranks;
  }
  const auto verdict = [&](const char* word, const std::string& problem = "") {
    loss.verdict = word;
    return LossVerdict{loss, problem};
  };
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (!std::isfinite(steps[i]))
      return verdict("not_finite", fmt::format("the loss of step {} is not finite", i + 1));
  for (std::size_t i = 0; i < losses.validations.size(); ++i)
    if (!std::isfinite(losses.validations[i]))
      return verdict("not_finite", fmt::format("the validation loss after step {} is not finite",
                                               losses.validated_at[i]));
  if (!reference.losses) return verdict("no_reference");
  const LossCurve& wanted = *reference.losses;
  // A stored reference may have more steps than this case asks for.
  if (wanted.steps.size() < steps.size() || wanted.validations.size() < losses.validations.size())
    return verdict("different", "the reference has fewer steps or validations");
  const LossDifference trained = largest_difference(steps, wanted.steps),
                       unseen = largest_difference(losses.validations, wanted.validations);
  const bool is_unseen = unseen.relative > trained.relative;
  const LossDifference& worst = is_unseen ? unseen : trained;
  const std::size_t step = is_unseen ? losses.validated_at[worst.at] : worst.at + 1;
  loss.largest_at_step = static_cast<Size>(step);
  loss.largest_relative_difference = worst.relative;
  if (worst.relative <= tolerance) return verdict("equal");
  return verdict(
      "different",
      fmt::format("the {} {} is {:.8g}, on {} {:.8g}: relative difference {:.1e}, tolerance {:.0e}",
                  is_unseen ? "validation loss after step" : "loss of step", step, worst.value,
                  counted(reference.ranks, "rank"), worst.wanted, worst.relative, tolerance));
}

FoundReference References::find(const Config& config) const {
  FoundReference found;
  if (!study_.verify.enabled) {
    found.problem = "the study has verify = false";
    return found;
  }
  const std::string name = reference_name(config);
  if (const auto failure = failures_.find(name); failure != failures_.end()) return failure->second;
  found.failure = outcome_of([&] {
    const Reference reference = results_.reference(name);
    if (!reference.losses)
      throw Error(ExitCode::usage, "{}: the file has no losses", (results_.path() / name).string());
    found.losses = reference.losses;
    found.ranks = reference.ranks.value_or(1);
  });
  return found;
}

/// Returns false if this launch does not compute the reference. Counts the launch as lost until the
/// reference is computed, unless another launch computes the same one and holds the lock.
bool References::begin(const ReferencePlan& plan) {
  Reference present = results_.reference(plan.name);
  if (present.has_steps(study_.verify.steps)) return false;
  lock_ = results_.take(plan.name + ".lock");
  if (!lock_) return true;
  if (options_.give_up && present.lost.value_or(0) >= *options_.give_up) {
    failures_[plan.name].failure = {ExitCode::communication,
                                    "launches ended while computing its reference"};
    lock_.reset();
    return false;
  }
  present.lost = present.lost.value_or(0) + 1;
  results_.write(plan.name, present);
  return true;
}

void References::compute(const ReferencePlan& plan, const Communicator& world,
                         AbortRecord& abort_record) {
  const bool is_first = world.rank() == 0;
  bool begins = false;
  collectively(world, [&] {
    if (is_first) begins = begin(plan);
  });
  if (!broadcast_json(world, begins).get<bool>()) return;
  const Group group = first_ranks(world, MPI_COMM_WORLD, plan.run.ranks, "reference");
  // The file, written before, tells the next launch that this one ended in the reference.
  abort_record.begin(plan.name, std::nullopt,
                     is_first ? std::optional(study_.limits.case_seconds) : std::nullopt);
  abort_record.enter("reference");
  Reference made;
  Outcome outcome;
  if (world.rank() < plan.run.ranks)
    outcome =
        run_on_group(group, study_.limits, [&] { made = run_reference(plan, group, study_); });
  sleep_until_all_arrive(study_.limits);
  abort_record.end();
  collectively(world, [&] {
    if (!is_first) return;
    Reference kept = results_.reference(plan.name);
    kept.lost.reset();
    if (outcome.failed())
      failures_[plan.name] = failed_reference(outcome, plan.run.ranks);
    else if (!kept.has_steps(study_.verify.steps))  // another launch may have computed more steps
      kept = made;
    results_.write(plan.name, kept);
    lock_.reset();
  });
}

void References::make(const std::vector<const Case*>& cases, const Communicator& world,
                      AbortRecord& abort_record) {
  if (!study_.verify.enabled) return;
  const Activity activity("training references on one rank");
  const Timer clock;
  std::set<std::string> names;
  for (const Case* point : cases) {
    const std::string name = reference_name(point->config);
    if (names.count(name) > 0 ||
        !fits(largest_memory(plan_of(point->config, point->ranks())).memory.total(), study_.limits))
      continue;
    names.insert(name);
    ReferencePlan plan;
    const Outcome outcome = outcome_of(
        [&] { plan = plan_reference(point->config, study_.verify, study_.limits, world.size()); });
    if (outcome.failed())
      failures_[name] =
          failed_reference(outcome, std::min<Size>(study_.verify.ranks, world.size()));
    else
      compute(plan, world, abort_record);
  }
  seconds_ = clock.seconds();
}

}  // namespace tessera::bench
