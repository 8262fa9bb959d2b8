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
#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/process/progress.hpp>
#include <tessera/process/provenance.hpp>

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

/// Trains on the ranks of the plan. Throws Error (timeout) if it takes longer than a case may.
/// Collective over the group.
Reference run_reference(const ReferencePlan& plan, const Group& group, const Study& study) {
  const Timer clock;
  const TrainingConfig& training = plan.config.training;
  const auto check = [&] { check_time(group.ranks, clock.seconds(), study.limits); };
  Reference reference;
  reference.losses =
      CaseRun::make(plan.config, group.ranks)->train(check, study.verify.steps).losses;
  reference.mesh = fmt::format("{}={}", training.distributed.mesh_axis_names[0], plan.ranks);
  reference.microbatches = training.microbatches;
  reference.asked_steps = study.verify.steps;
  reference.seconds = clock.seconds();
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

std::string mesh_text(const std::string& mesh) { return mesh == "data=1" ? "1 rank" : mesh; }

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

LossVerdict judge_losses(const Verification& verification, const FoundReference& found,
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
  loss.problem = found.problem;
  if (found.reference) {
    loss.reference_step_losses = found.reference->losses.steps;
    loss.reference_epoch_losses = found.reference->losses.epochs;
    loss.reference_validation_losses = found.reference->losses.validations;
    loss.reference_mesh = found.reference->mesh;
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
  if (!found.reference) return verdict("no_reference");
  const LossCurve& wanted = found.reference->losses;
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
                  mesh_text(found.reference->mesh), worst.wanted, worst.relative, tolerance));
}

FoundReference References::find(const Config& config) const {
  FoundReference found;
  if (!study_.verify.enabled) {
    found.problem = "the study has verify = false";
    return found;
  }
  const auto known = found_.find(reference_name(config));
  return known == found_.end() ? found : known->second;
}

std::string References::meshes_text() const {
  std::set<std::string> lines;
  for (const auto& [name, found] : found_)
    if (found.reference && mesh_text(found.reference->mesh) == found.reference->mesh)
      lines.insert("losses of what does not fit on one rank are held against " +
                   found.reference->mesh + "\n");
  return fmt::format("{}", fmt::join(lines, ""));
}

FoundReference References::compute(const ReferencePlan& plan, std::vector<std::string> instead_of) {
  launch_.append(Begin{plan.name, 0, std::move(instead_of)});
  const Group group = first_ranks(launch_.world, plan.ranks, "reference");
  End end{plan.name};
  // If the job ends meanwhile, the begin tells the next launch so.
  const Outcome outcome = launch_.abort_record.run(
      group, end, [&] { end.reference = run_reference(plan, group, study_); });
  if (outcome.failed()) end.reference.reset();
  end.last = true;
  end.time = utc_time();
  launch_.append(end);
  if (outcome.failed()) return failed_reference(outcome, plan.ranks);
  return {end.reference};
}

void References::make(const std::vector<const Case*>& cases, Journals journals,
                      const std::map<std::string, std::vector<std::string>>& instead_of) {
  if (!study_.verify.enabled) return;
  const Communicator& world = launch_.world;
  const std::optional<Size>& give_up = launch_.options.give_up;
  const Activity activity("training references");
  std::set<std::string> names;
  for (const Case* point : cases) {
    if (!fits(largest_memory(plan_of(point->config, point->ranks())).memory.total(),
              study_.limits) ||
        !names.insert(reference_name(point->config)).second)
      continue;
    const std::string name = reference_name(point->config);
    FoundReference& found = found_[name];
    bool is_missing = false;
    std::vector<std::string> replaced;
    if (world.rank() == 0) {
      replaced = instead_of.at(name);
      for (const std::string& launch : replaced)
        for (auto& [round, end] : journals.lines[name][launch].ends) end.reference.reset();
      std::optional<Reference> known = reference_of(journals, name);
      const Size crashes = crashes_of_reference(journals, name, cases);
      if (known && known->has_steps(study_.verify.steps))
        found.reference = std::move(known);
      else if (give_up && crashes >= *give_up)
        found.failure = {ExitCode::communication, "launches ended while computing its reference"};
      else
        is_missing = true;
    }
    if (!broadcast_json(world, is_missing).get<bool>()) continue;
    ReferencePlan plan;
    const Outcome outcome = outcome_of(
        [&] { plan = plan_reference(point->config, study_.verify, study_.limits, world.size()); });
    found = outcome.failed()
                ? failed_reference(outcome, std::min<Size>(study_.verify.ranks, world.size()))
                : compute(plan, replaced);
  }
  found_ = broadcast_json(world, found_).get<std::map<std::string, FoundReference>>();
}

}  // namespace tessera::bench
