// SPDX-License-Identifier: Apache-2.0
#include "run/attempt.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/process/provenance.hpp>

#include "results/documents.hpp"
#include "results/summary.hpp"
#include "run/explanation.hpp"
#include "run/group.hpp"
#include "run/references.hpp"

namespace tessera::bench {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TakenCase, attempt, launches, rounds, steps)

namespace {

using Json = nlohmann::json;

/// The parts of a launch's provenance that tell one program from another.
Json program_of(const Json& provenance) {
  Json program;
  for (const char* key : {"git_revision", "git_dirty", "compiler", "build_type"})
    program[key] = provenance.value(key, Json());
  return program;
}

/// Returns what launches of the same program have measured of a case that is to be continued.
TakenCase kept_rounds(const ResultsDirectory& results, const std::string& id, const Json& launch) {
  const std::optional<CaseResult> result = results.result(id);
  const auto earlier = result ? results.launch(result->launch) : std::nullopt;
  if (!earlier || program_of(earlier->at("provenance")) != program_of(launch.at("provenance")))
    return {};
  std::vector<std::vector<double>> steps = results.steps(id);
  if (steps.size() != result->rounds.size()) return {};
  return {0, result->launches.value_or(0), result->rounds, std::move(steps)};
}

}  // namespace

CaseResult skipped_result(const Study& study, const Case& point, const std::string& launch) {
  CaseResult result = new_result(study, point);
  end_case(result, ExitCode::skipped, *point.skip_reason);
  result.attempt = 1;
  result.launch = launch;
  result.started = result.finished = utc_time();
  return result;
}

CaseResult given_up_result(CaseResult unfinished) {
  end_case(unfinished, ExitCode::communication,
           fmt::format("its launch ended during the case, in attempt {}", unfinished.attempt));
  unfinished.finished = utc_time();
  return unfinished;
}

Attempt::Attempt(const Case& point, const AttemptContext& context, bool stays_set_up)
    : point_(&point), context_(&context), stays_set_up_(stays_set_up) {
  TakenCase taken;
  collectively(context.world, [&] {
    if (context.world.rank() != 0) return;
    // Another launch may have run the case since this one chose it.
    const Selected selected =
        select_case(point, context.results, context.options, context.study, context.capacity);
    if (selected.what == Selected::What::run) lock_ = context.results.take_case(point.id);
    if (!lock_) return;
    if (selected.continues)
      taken = kept_rounds(context.results, point.id, context.launch.document());
    taken.attempt = context.results.begin_attempt(point.id);
  });
  taken = broadcast_json(context.world, taken).get<TakenCase>();
  is_taken_ = taken.attempt > 0;
  if (is_taken_) begin(taken);
}

void Attempt::begin(const TakenCase& taken) {
  CaseResult& result = state_.result;
  result = new_result(context_->study, *point_);
  result.status = "running";
  result.attempt = taken.attempt;
  result.launches = taken.launches;
  result.launch = context_->launch.name();
  result.started = utc_time();
  result.rounds = taken.rounds;
  state_.steps = taken.steps;
  const Plan plan = plan_of(point_->config, point_->ranks());
  const Limits& limits = context_->study.limits;
  const MemoryPlan memory = largest_memory(plan).memory;
  result.memory = memory_json(memory, limits);
  result.pipeline = pipeline_json(plan);
  if (fits(memory.total(), limits)) return predict(plan);
  state_.is_done = true;
  end_case(result, ExitCode::out_of_memory, too_large(memory.total(), limits));
  write();
}

void Attempt::predict(const Plan& plan) {
  if (context_->world.rank() > 0) return;
  const Machine* const machine = context_->launch.machine(*point_);
  if (machine == nullptr) return;
  state_.predicted = simulate(plan, cost_on(*machine, plan));
  state_.result.prediction = prediction_json(*state_.predicted, machine->name,
                                             context_->launch.is_oversubscribed(*point_));
}

/// Ranks that are not of the case sleep.
void Attempt::run_round() {
  if (!is_taken_) return;
  state_.clock = Timer();
  const bool is_first = context_->world.rank() == 0;
  const bool runs = !state_.is_done;
  std::optional<double> deadline;
  if (is_first) deadline = context_->study.limits.case_seconds;
  if (runs) context_->abort_record.begin(point_->id, state_.result, deadline);
  if (runs && is_first) {
    // The next launch finds that this one ended in the case.
    CaseResult running = state_.result;
    running.status = "running";
    context_->results.write_result(running);
  }
  FoundReference reference;
  if (is_first && state_.result.status == "running")
    reference = context_->references.find(point_->config);
  sleep_until_all_arrive(context_->study.limits);
  if (runs && context_->world.rank() < point_->ranks()) measure(reference);
  sleep_until_all_arrive(context_->study.limits);
  context_->abort_record.end();
  state_.seconds_before = state_.seconds();
  if (!is_first || !lock_) return;
  write();
  if (state_.is_done) lock_.reset();
}

void Attempt::measure(const FoundReference& reference) {
  const Group& group = context_->launch.group(*point_);
  const Outcome outcome = run_on_group(group, context_->study.limits, [&] {
    const FoundReference shared = broadcast_json(group.ranks, reference);
    if (shared.failure.failed()) throw Error(shared.failure.code, shared.failure.message);
    bench::run_round(*point_, *context_, shared, state_);
  });
  CaseResult& result = state_.result;
  if (outcome.failed()) end_case(result, outcome.code, outcome.message);
  const auto of_launch =
      std::count_if(result.rounds.begin(), result.rounds.end(),
                    [&](const Round& round) { return round.launch == context_->launch.name(); });
  state_.is_done |= !result.is_measured() || of_launch >= context_->study.measure.rounds;
  if (result.is_measured() && state_.is_done) ++*result.launches;
  if (state_.is_done || !stays_set_up_) state_.run.reset();
}

void Attempt::write() const {
  if (context_->world.rank() != 0) return;
  CaseResult result = state_.result;
  result.finished = utc_time();
  result.wall_seconds = state_.seconds_before;
  if (!state_.steps.empty())
    context_->results.write(
        ResultsDirectory::of_case(point_->id, "steps.json"),
        {{"schema_version", 1}, {"attempt", result.attempt}, {"rounds", state_.steps}});
  context_->results.write_result(result);
}

}  // namespace tessera::bench
