// SPDX-License-Identifier: Apache-2.0
#include "run/attempt.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/process/provenance.hpp>

#include "run/group.hpp"

namespace tessera::bench {

namespace {

/// Returns what launches of the same program have measured of a case that is to be continued.
TakenCase kept_rounds(const ResultsDirectory& results, const std::string& id,
                      const Program& program) {
  const std::optional<CaseResult> result = results.result(id);
  const auto earlier = result ? results.program(result->launch) : std::nullopt;
  if (!earlier || earlier->program != program) return {};
  std::vector<std::vector<double>> steps = results.steps(id);
  if (steps.size() != result->rounds.size()) return {};
  return {0, result->launches.value_or(0), result->rounds, std::move(steps)};
}

}  // namespace

CaseResult skipped_result(const Study& study, const Case& point, const std::string& launch) {
  CaseResult result = new_result(study, point);
  result.end(ExitCode::skipped, *point.skip_reason);
  result.attempt = 1;
  result.launch = launch;
  result.started = result.finished = utc_time();
  return result;
}

CaseResult given_up_result(CaseResult unfinished) {
  unfinished.end(
      ExitCode::communication,
      fmt::format("its launch ended during the case, in attempt {}", unfinished.attempt));
  unfinished.finished = utc_time();
  return unfinished;
}

Attempt::Attempt(const Case& point, const AttemptContext& context, bool stays_set_up)
    : point_(point), context_(context), study_(context.study), stays_set_up_(stays_set_up) {
  TakenCase taken;
  collectively(context.world, [&] {
    if (context.world.rank() != 0) return;
    // Another launch may have run the case since this one chose it.
    const Selected selected =
        select_case(point, context.results, context.options, study_, context.capacity);
    if (selected.what == Selected::What::run) lock_ = context.results.take_case(point.id);
    if (!lock_) return;
    if (selected.continues)
      taken = kept_rounds(context.results, point.id, context.launch.program());
    taken.attempt = context.results.begin_attempt(point.id);
  });
  taken = broadcast_json(context.world, taken).get<TakenCase>();
  is_taken_ = taken.attempt > 0;
  if (is_taken_) begin(taken);
}

void Attempt::begin(const TakenCase& taken) {
  result_ = new_result(study_, point_);
  result_.status = "running";
  result_.attempt = taken.attempt;
  result_.launches = taken.launches;
  result_.launch = context_.launch.name();
  result_.started = utc_time();
  result_.rounds = taken.rounds;
  steps_ = taken.steps;
  const Plan plan = plan_of(point_.config, point_.ranks());
  if (!add_plan(result_, plan, study_.limits)) {
    is_done_ = true;
    return write();
  }
  const Machine* const machine =
      context_.world.rank() == 0 ? context_.launch.machine(point_) : nullptr;
  if (machine == nullptr) return;
  const Plan on_machine = plan_of(point_.config, point_.ranks(), machine->target());
  predicted_ = simulate(on_machine, cost_on(*machine, on_machine));
  result_.prediction =
      prediction_of(*predicted_, machine->name, context_.launch.is_oversubscribed(point_));
}

/// Ranks that are not of the case sleep.
void Attempt::run_round() {
  if (!is_taken_) return;
  clock_ = Timer();
  const bool is_first = context_.world.rank() == 0;
  const bool runs = !is_done_;
  std::optional<double> deadline;
  if (is_first) deadline = study_.limits.case_seconds;
  if (runs) context_.abort_record.begin(point_.id, result_, deadline);
  if (runs && is_first) {
    // The next launch finds that this one ended in the case.
    CaseResult running = result_;
    running.status = "running";
    context_.results.write_result(running);
  }
  FoundReference reference;
  if (is_first && result_.status == "running") reference = context_.references.find(point_.config);
  sleep_until_all_arrive(study_.limits);
  if (runs && context_.world.rank() < point_.ranks()) measure(reference);
  sleep_until_all_arrive(study_.limits);
  context_.abort_record.end();
  round_seconds_ = clock_.seconds();
  seconds_before_ += round_seconds_;
  if (!is_first || !lock_) return;
  write();
  if (is_done_) lock_.reset();
}

void Attempt::measure(const FoundReference& reference) {
  const Group& group = context_.launch.group(point_);
  const Outcome outcome = run_on_group(group, study_.limits, [&] {
    const FoundReference shared = broadcast_json(group.ranks, reference);
    if (shared.failure.failed()) throw Error(shared.failure.code, shared.failure.message);
    run_steps(shared);
  });
  if (outcome.failed()) result_.end(outcome.code, outcome.message);
  const auto of_launch =
      std::count_if(result_.rounds.begin(), result_.rounds.end(),
                    [&](const Round& round) { return round.launch == context_.launch.name(); });
  is_done_ |= !result_.is_measured() || of_launch >= study_.measure.rounds;
  if (result_.is_measured() && is_done_) ++*result_.launches;
  if (is_done_ || !stays_set_up_) run_.reset();
}

void Attempt::write() const {
  if (context_.world.rank() != 0) return;
  CaseResult result = result_;
  result.finished = utc_time();
  result.wall_seconds = seconds_before_;
  if (!steps_.empty()) context_.results.write_steps(result, steps_);
  context_.results.write_result(result);
}

}  // namespace tessera::bench
