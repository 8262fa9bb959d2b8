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
#include "run/pipeline_result.hpp"
#include "run/references.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// The parts of a launch's provenance that tell one program from another.
Json program_of(const Json& provenance) {
  Json program;
  for (const char* key : {"git_revision", "git_dirty", "compiler", "build_type"})
    program[key] = provenance.value(key, Json());
  return program;
}

/// What earlier launches of this program have measured of a case that is to be continued.
Json kept_rounds(const ResultsDirectory& results, const std::string& id, const Json& launch) {
  Json kept{{"launches", 0}, {"rounds", Json::array()}, {"steps", Json::array()}};
  const Json result = results.result(id).value_or(Json::object());
  const auto earlier = results.launch(value_or<std::string>(result, "launch", ""));
  if (!earlier || program_of(earlier->at("provenance")) != program_of(launch.at("provenance")))
    return kept;
  for (const char* key : {"launches", "rounds"})
    if (result.contains(key) && !result.at(key).is_null()) kept[key] = result.at(key);
  kept["steps"] = results.steps(id);
  return kept["steps"].size() == kept["rounds"].size() ? kept : Json{{"launches", 0}};
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
           fmt::format("its launch ended during the case, in attempt {}",
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
  const Limits& limits = context_->study.limits;
  const MemoryPlan memory = largest_memory(plan).memory;
  result["memory"] = memory_json(memory, limits);
  result["pipeline"] = pipeline_json(plan);
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
  state_.result["prediction"] = prediction_json(*state_.predicted, machine->name,
                                                context_->launch.is_oversubscribed(*point_));
}

/// The ranks that have nothing to do sleep.
void Attempt::run_round() {
  if (state_.result.is_null()) return;
  state_.clock = Timer();
  const bool is_first = context_->world.rank() == 0;
  std::optional<double> deadline;
  if (is_first) deadline = context_->study.limits.case_seconds;
  if (!state_.is_done) context_->last_word.begin(state_.result, deadline);
  if (is_first && !state_.is_done) {
    // A launch that is killed from here on ended in this case.
    Json begun = state_.result;
    begun["status"] = "running";
    context_->results.write_result(begun);
  }
  Json reference = Json::object();
  if (is_first && state_.result.at("status") == "running")
    reference = context_->references.find(point_->config);
  sleep_until_all_arrive(context_->study.limits);
  if (!state_.is_done && context_->world.rank() < point_->ranks()) measure(reference);
  sleep_until_all_arrive(context_->study.limits);
  context_->last_word.end();
  state_.seconds_before = state_.seconds();
  if (!is_first || !lock_) return;
  write();
  if (state_.is_done) lock_.reset();
}

void Attempt::measure(const Json& reference) {
  const Group& group = context_->launch.group(*point_);
  const Outcome outcome = run_on_group(group, context_->study.limits, [&] {
    const Json shared = broadcast_json(group.ranks, reference);
    if (shared.contains("error"))
      throw Error(static_cast<ExitCode>(shared.at("code").get<int>()), shared.at("error"));
    bench::run_round(*point_, *context_, shared, state_);
  });
  if (outcome.failed()) end_case(state_.result, outcome.code, outcome.message);
  const bool is_ok = is_measured(state_.result);
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
