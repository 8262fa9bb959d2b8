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

/// The watchdog of the communicators, which can name the ranks that are missing, comes first.
double hard_limit(const Limits& limits) { return 2 * limits.case_seconds + 5; }

/// Another launch may have run the case since this one chose it.
bool is_to_run(const Case& point, const AttemptContext& context) {
  return select_case(point, context.results, context.options, context.study.limits.case_seconds,
                     context.world.size())
             .what == Selected::What::run;
}

Json begin(const Case& point, const AttemptContext& context) {
  Json result = result_skeleton(context.study, point);
  result["status"] = "running";
  result["launch"] = context.launch.name();
  result["started"] = utc_time();
  const Plan plan = plan_of(point.config, point.ranks());
  result["memory"] = memory_json(largest_memory(plan).memory, context.study.limits);
  return result;
}

void finish(Json& result, const Timer& clock) {
  result["finished"] = utc_time();
  result["wall_seconds"] = clock.seconds();
}

/// The losses to compare with, from the results or made now. On rank 0, while the others sleep.
Json find_reference(const Case& point, const AttemptContext& context, const Timer& clock) {
  const Config config = reference_config(point.config);
  const std::string key = reference_key(config);
  if (auto known = context.results.reference(key)) return *known;
  const double limit = context.study.limits.case_seconds;
  const Json made = run_reference(config, context.world, context.study.limits, [&] {
    if (clock.seconds() > limit)
      throw Error(ExitCode::timeout,
                  fmt::format("its one-rank run took longer than the limit of {:g} s", limit));
  });
  if (made.contains("losses"))
    context.results.write_document(ResultsDirectory::reference_name(key), made);
  return made;
}

/// How a case went on the ranks that ran it, the same on all of them.
Outcome run_on_group(const Case& point, const AttemptContext& context, const Json& reference,
                     const Timer& clock, Json& result, std::vector<double>& seconds, Json& trace) {
  const Group& group = context.launch.group(point);
  Outcome mine;
  try {
    const Json shared = broadcast_json(group.ranks, reference);
    if (shared.contains("error"))
      throw Error(static_cast<ExitCode>(shared.at("code").get<int>()), shared.at("error"));
    const std::string name =
        ResultsDirectory::reference_name(reference_key(reference_config(point.config)));
    std::function<void(const Json&)> keep;
    if (context.options.traces) keep = [&](const Json& made) { trace = made; };
    seconds = run_case(
        point,
        {context.study, group.ranks, context.launch.calibration(point), shared, name, clock,
         [&](const std::string& phase) { context.last_word.enter(phase); }, context.fault, keep},
        result);
  } catch (...) {
    mine = describe_current_exception();
  }
  const auto agreed = agree_on_outcome(group.raw, mine, grace_seconds(context.study.limits));
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
  Json result = begin(point, context);
  result["attempt"] = attempt;

  if (result["memory"]["predicted_oom"].get<bool>()) {
    end_case(result, ExitCode::out_of_memory,
             fmt::format("needs {} per rank, the limit is {}",
                         human_bytes(result["memory"]["planned_bytes"]),
                         human_bytes(result["memory"]["limit_bytes"])));
    finish(result, clock);
    if (is_first) context.results.write_result(point.id, result);
    return result;
  }

  context.last_word.begin(result);
  std::optional<Deadline> deadline;
  Json reference;
  on_first_rank(context.world.rank(), [&] {
    deadline.emplace(hard_limit(context.study.limits), context.last_word,
                     context.study.limits.case_seconds);
    context.results.write_result(point.id, result);
    context.last_word.enter("one-rank run");
    try {
      reference = find_reference(point, context, clock);
    } catch (...) {
      const Outcome outcome = describe_current_exception();
      reference = {{"error", outcome.message}, {"code", static_cast<int>(outcome.code)}};
    }
  });
  std::vector<double> seconds;
  Json trace;
  if (context.world.rank() < point.ranks()) {
    const Outcome outcome = run_on_group(point, context, reference, clock, result, seconds, trace);
    if (outcome.failed()) end_case(result, outcome.code, outcome.message);
  }
  sleep_until_all_arrive();
  deadline.reset();
  context.last_word.end();
  finish(result, clock);
  if (!is_first) return result;
  if (!seconds.empty())
    context.results.write_steps(point.id, result["attempt"].get<Size>(), seconds);
  if (!trace.is_null()) context.results.write_trace(point.id, trace);
  context.results.write_result(point.id, result);
  return result;
}

}  // namespace tessera::bench
