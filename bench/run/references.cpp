// SPDX-License-Identifier: Apache-2.0
#include "run/references.hpp"

#include <algorithm>
#include <set>

#include <tessera/base/text.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/process/progress.hpp>

#include "results/result_parts.hpp"
#include "run/group.hpp"
#include "run/reference_run.hpp"

namespace tessera::bench {
namespace {

FoundReference failed_reference(const Outcome& outcome, Size ranks) {
  FoundReference failed;
  if (outcome.code == ExitCode::out_of_memory)
    failed.problem = counted(ranks, "rank") + ": " + outcome.message;
  else
    failed.failure = {outcome.code, "its reference: " + outcome.message};
  return failed;
}

}  // namespace

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
  const int color = world.rank() < plan.run.ranks ? 0 : 1;
  const Group group{world.split(color, world.rank(), "reference"),
                    split_raw(MPI_COMM_WORLD, color, world.rank())};
  // The file, written before, tells the next launch that this one ended in the reference.
  abort_record.begin(plan.name, std::nullopt,
                     is_first ? std::optional(study_.limits.case_seconds) : std::nullopt);
  abort_record.enter("reference");
  Reference made;
  Outcome outcome;
  if (color == 0)
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
