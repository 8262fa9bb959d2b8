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
#include "run/reference.hpp"
#include "run/sleeping.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// Seconds that a rank with an error waits for those that may be stuck in a collective.
double grace_seconds(const Limits& limits) { return std::min(10.0, limits.case_seconds); }

/// Another launch may have run the case since this one chose it.
bool is_to_run(const Case& point, const AttemptContext& context) {
  return select_case(point, context.results, context.options, context.study.limits.case_seconds,
                     context.world.size())
             .what == Selected::What::run;
}

Json begin(const Case& point, const AttemptContext& context, const Json& attempt) {
  Json result = result_skeleton(context.study, point);
  result["status"] = "running";
  result["attempt"] = attempt;
  result["launch"] = context.launch.name();
  result["started"] = utc_time();
  const Plan plan = plan_of(point.config, point.ranks());
  result["memory"] = memory_json(largest_memory(plan).memory, context.study.limits);
  return result;
}

/// How a case went on the ranks that ran it, the same on all of them.
Outcome run_on_group(const Case& point, const AttemptContext& context, const Json& reference,
                     const Timer& clock, Json& result, std::vector<double>& seconds) {
  const Group& group = context.launch.group(point);
  const Outcome mine = outcome_of([&] {
    const Json shared = broadcast_json(group.ranks, reference);
    if (shared.contains("error"))
      throw Error(static_cast<ExitCode>(shared.at("code").get<int>()), shared.at("error"));
    seconds = run_case(point, context, shared, clock, result);
  });
  const auto agreed = agree_on_outcome(group.raw.get(), mine, grace_seconds(context.study.limits));
  if (agreed) return *agreed;
  // The others wait for this rank in a collective that will never end.
  const std::string message = fmt::format("rank {}: {}", context.world.rank(), mine.message);
  log_error(message);
  abort_job(mine.code, message);
}

/// Everything that takes time. The ranks that have nothing to do sleep.
void run(const Case& point, const AttemptContext& context, const Timer& clock, Json& result) {
  const bool is_first = context.world.rank() == 0;
  std::optional<double> deadline;
  if (is_first) deadline = context.study.limits.case_seconds;
  context.last_word.begin(result, deadline);
  Json reference;
  if (is_first) {
    context.results.write_result(result);
    context.last_word.enter("one-rank run");
    reference =
        find_reference(point.config, context.results, context.world, context.study.limits, clock);
  }
  sleep_until_all_arrive();
  std::vector<double> seconds;
  if (context.world.rank() < point.ranks()) {
    const Outcome outcome = run_on_group(point, context, reference, clock, result, seconds);
    if (outcome.failed()) end_case(result, outcome.code, outcome.message);
  }
  sleep_until_all_arrive();
  context.last_word.end();
  if (is_first && !seconds.empty())
    context.results.write(
        ResultsDirectory::of_case(point.id, "steps.json"),
        {{"schema_version", 1}, {"attempt", result["attempt"]}, {"seconds", seconds}});
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

Json attempt_case(const Case& point, const AttemptContext& context) {
  const Timer clock;
  const bool is_first = context.world.rank() == 0;
  std::optional<CaseLock> lock;  // until the result is final
  Json attempt;
  collectively(context.world, [&] {
    if (is_first && is_to_run(point, context)) lock = context.results.take_case(point.id);
    if (lock) attempt = context.results.begin_attempt(point.id);
  });
  attempt = broadcast_json(context.world, attempt);
  if (attempt.is_null()) return nullptr;
  Json result = begin(point, context, attempt);
  const Json& memory = result["memory"];
  if (memory.at("predicted_oom") == true)
    end_case(
        result, ExitCode::out_of_memory,
        fmt::format("needs {} per rank, the limit is {}", human_bytes(memory.at("planned_bytes")),
                    human_bytes(memory.at("limit_bytes"))));
  else
    run(point, context, clock, result);
  result["finished"] = utc_time();
  result["wall_seconds"] = clock.seconds();
  if (is_first) context.results.write_result(result);
  return result;
}

}  // namespace tessera::bench
