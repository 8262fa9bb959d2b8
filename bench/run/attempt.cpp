// SPDX-License-Identifier: Apache-2.0
#include "run/attempt.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <tessera/base/agreement.hpp>
#include <tessera/base/log.hpp>
#include <tessera/base/provenance.hpp>
#include <tessera/base/runtime.hpp>
#include <tessera/base/text.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>

#include "results/documents.hpp"
#include "run/pipeline_result.hpp"
#include "run/reference.hpp"
#include "run/sleeping.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// Seconds that a rank with an error waits for those that may be stuck in a collective: less than
/// it takes their watchdog to end the job, whose word would hide the cause.
double grace_seconds(const Limits& limits) { return std::min(10.0, limits.case_seconds / 2); }

/// What earlier launches of this program have measured of a case that is to be continued.
Json kept_rounds(const ResultsDirectory& results, const std::string& id, const Json& launch) {
  Json kept{{"launches", 0}, {"rounds", Json::array()}, {"steps", Json::array()}};
  const Json result = results.result(id).value_or(Json::object());
  const auto earlier = results.launch(result.value("launch", ""));
  if (!earlier || program_of(earlier->at("provenance")) != program_of(launch.at("provenance")))
    return kept;
  for (const char* key : {"launches", "rounds"})
    if (result.contains(key) && !result.at(key).is_null()) kept[key] = result.at(key);
  kept["steps"] = results.steps(id);
  return kept["steps"].size() == kept["rounds"].size() ? kept : Json{{"launches", 0}};
}

/// How a round went on the ranks that ran it, the same on all of them.
Outcome run_on_group(const Case& point, const AttemptContext& context, const Json& reference,
                     CaseState& state) {
  const Group& group = context.launch.group(point);
  const Outcome mine = outcome_of([&] {
    const Json shared = broadcast_json(group.ranks, reference);
    if (shared.contains("error"))
      throw Error(static_cast<ExitCode>(shared.at("code").get<int>()), shared.at("error"));
    run_round(point, context, shared, state);
  });
  const auto agreed = agree_on_outcome(group.raw.get(), mine, grace_seconds(context.study.limits));
  if (agreed) return *agreed;
  // The others wait for this rank in a collective that will never end.
  const std::string message = fmt::format("rank {}: {}", context.world.rank(), mine.message);
  log_error(message);
  abort_job(mine.code, message);
}

}  // namespace

Json skipped_result(const Study& study, const Case& point, const std::string& launch) {
  Json result = result_skeleton(study, point);
  end_case(result, ExitCode::skipped, *point.skip_reason);
  result["attempt"] = 1;
  result["launch"] = launch;
  result["started"] = result["finished"] = utc_time();
  return result;
}

Json given_up_result(Json unfinished) {
  end_case(unfinished, ExitCode::communication,
           fmt::format("its launch ended before the case did, in attempt {}",
                       unfinished.at("attempt").get<Size>()));
  unfinished["finished"] = utc_time();
  return unfinished;
}

Attempt::Attempt(const Case& point, const AttemptContext& context, bool stays_set_up)
    : point_(&point), context_(&context), stays_set_up_(stays_set_up) {
  Json taken;
  collectively(context.world, [&] {
    if (context.world.rank() != 0) return;
    // Another launch may have run the case since this one chose it.
    const Selected selected =
        select_case(point, context.results, context.options, context.study, context.capacity);
    if (selected.what == Selected::What::run) lock_ = context.results.take_case(point.id);
    if (!lock_) return;
    taken = selected.continues ? kept_rounds(context.results, point.id, context.launch.document())
                               : Json{{"launches", 0}};
    taken["attempt"] = context.results.begin_attempt(point.id);
  });
  taken = broadcast_json(context.world, taken);
  state_.is_done = taken.is_null();
  if (!taken.is_null()) begin(taken);
}

void Attempt::begin(const Json& taken) {
  Json& result = state_.result;
  result = result_skeleton(context_->study, *point_);
  result["status"] = "running";
  result["attempt"] = taken.at("attempt");
  result["launches"] = taken.at("launches");
  result["launch"] = context_->launch.name();
  result["started"] = utc_time();
  state_.rounds = taken.value("rounds", std::vector<Round>());
  state_.steps = taken.value("steps", std::vector<std::vector<double>>());
  if (!state_.rounds.empty()) result["rounds"] = state_.rounds;
  const Plan plan = plan_of(point_->config, point_->ranks());
  result["memory"] = memory_json(largest_memory(plan).memory, context_->study.limits);
  result["pipeline"] = pipeline_json(plan);
  const Json& memory = result["memory"];
  if (memory.at("predicted_oom") != true) return;
  state_.is_done = true;
  end_case(
      result, ExitCode::out_of_memory,
      fmt::format("needs {} per rank, the limit is {}", human_bytes(memory.at("planned_bytes")),
                  human_bytes(memory.at("limit_bytes"))));
  write();
}

/// The ranks that have nothing to do sleep.
void Attempt::run_round() {
  if (state_.result.is_null()) return;
  state_.clock = Timer();
  const bool is_first = context_->world.rank() == 0;
  std::optional<double> deadline;
  if (is_first) deadline = context_->study.limits.case_seconds;
  if (!state_.is_done) context_->last_word.begin(state_.result, deadline);
  Json reference = Json::object();
  if (is_first && state_.result.at("status") == "running") {
    context_->results.write_result(state_.result);
    context_->last_word.enter("one-rank run");
    reference = find_reference(point_->config, context_->results, context_->world,
                               context_->study.limits, state_.clock);
  }
  sleep_until_all_arrive();
  if (!state_.is_done && context_->world.rank() < point_->ranks()) measure(reference);
  sleep_until_all_arrive();
  context_->last_word.end();
  state_.seconds_before = state_.seconds();
  if (!is_first || !lock_) return;
  write();
  if (state_.is_done) lock_.reset();
}

void Attempt::measure(const Json& reference) {
  const Outcome outcome = run_on_group(*point_, *context_, reference, state_);
  if (outcome.failed()) end_case(state_.result, outcome.code, outcome.message);
  const bool is_ok = state_.result.at("status") == "ok";
  const auto of_launch =
      std::count_if(state_.rounds.begin(), state_.rounds.end(),
                    [&](const Round& round) { return round.launch == context_->launch.name(); });
  state_.is_done |= !is_ok || of_launch >= context_->study.measure.rounds;
  if (is_ok && state_.is_done)
    state_.result["launches"] = state_.result.at("launches").get<Size>() + 1;
  if (state_.is_done || !stays_set_up_) state_.run.reset();
}

void Attempt::write() const {
  if (context_->world.rank() != 0) return;
  Json result = state_.result;
  result["finished"] = utc_time();
  result["wall_seconds"] = state_.seconds_before;
  if (!state_.steps.empty())
    context_->results.write(
        ResultsDirectory::of_case(point_->id, "steps.json"),
        {{"schema_version", 1}, {"attempt", result.at("attempt")}, {"rounds", state_.steps}});
  context_->results.write_result(result);
}

}  // namespace tessera::bench
