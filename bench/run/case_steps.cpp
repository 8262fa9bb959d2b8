// SPDX-License-Identifier: Apache-2.0
#include "run/case_steps.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>

#include "measure/chrome_trace.hpp"
#include "measure/gemm_peak.hpp"
#include "measure/slow_rank.hpp"
#include "measure/slowest.hpp"
#include "measure/statistics.hpp"
#include "results/documents.hpp"
#include "results/summary.hpp"
#include "run/explanation.hpp"
#include "run/loss_verdict.hpp"
#include "run/pipeline_result.hpp"
#include "run/reference_plan.hpp"
#include "run/traffic_rows.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// What the phases of a case share.
struct CaseContext {
  const Study& study;
  const Communicator& ranks;  ///< of the case
  const CaseState& state;
};

void check_time(const CaseContext& context) {
  collectively(context.ranks, [&] {
    const double limit = context.study.limits.case_seconds;
    if (context.state.seconds() > limit)
      throw Error(ExitCode::timeout, "took longer than the limit of {:g} s", limit);
  });
}

/// Whether --inject lets this go wrong on this rank.
bool has_fault(const RunOptions& options, Fault::Kind kind, int rank) {
  return options.fault && options.fault->kind == kind && options.fault->rank == rank;
}

void inject_failure(const RunOptions& options, int rank) {
  if (has_fault(options, Fault::Kind::throws, rank)) throw std::runtime_error("thrown by --inject");
  if (has_fault(options, Fault::Kind::stalls, rank))
    std::this_thread::sleep_for(std::chrono::hours(1));
}

template <class T>
Size choose_block(CaseRun<T>& run, const CaseContext& context) {
  return block_steps(context.study.measure, median(slowest(context.ranks, run.time_steps(3))));
}

/// Steps with the machine's speed before and behind them. The launch takes no more rounds of a case
/// that has used up half of its time.
template <class T>
void measure_block(CaseRun<T>& run, const AttemptContext& attempt, const CaseContext& context,
                   CaseState& state) {
  const MachineProbe& probe = attempt.launch.probe();
  const MachineSpeed before = probe.measure(context.ranks);
  std::optional<SlowRank> slow;
  if (has_fault(attempt.options, Fault::Kind::slows, context.ranks.rank()))
    slow.emplace(attempt.options.fault->share);
  std::vector<double> steps = run.time_steps(state.block_steps);
  slow.reset();
  steps.push_back(state.seconds());
  steps = slowest(context.ranks, steps);
  state.is_done = steps.back() > context.study.limits.case_seconds / 2;
  steps.pop_back();
  state.rounds.push_back({attempt.launch.name(), attempt.launch.seconds(), median(steps),
                          mean(before, probe.measure(context.ranks))});
  state.steps.push_back(std::move(steps));
}

template <class T>
bool check_memory(const CaseRun<T>& run, const CaseContext& context, Json& result) {
  result["memory"].update(conclude_json(
      context.ranks, {run.planned_bytes(), run.measured_bytes()},
      [&](const std::vector<Json>& ranks) -> Json {
        const bool as_planned = std::all_of(ranks.begin(), ranks.end(),
                                            [](const Json& rank) { return rank[0] == rank[1]; });
        const auto largest = static_cast<std::size_t>(largest_memory(run.plan()).rank);
        return {{"as_planned", as_planned}, {"measured_bytes", ranks[largest][1]}};
      }));
  return result["memory"]["as_planned"];
}

/// The rates of a step of this length.
Json rates_json(const Plan& plan, const CaseContext& context, std::optional<double> seconds) {
  return compute_json(plan, context.state.gemm_peak,
                      context.study.limits.vendor_peak_flops_per_second, seconds);
}

/// Of what all ranks say of their losses, {problem, verdict}: ranks along `model` compute theirs
/// apart, and the first one with a problem speaks for all.
Json first_problem(const std::vector<Json>& all) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::string problem = all[rank][0];
    if (!problem.empty() && rank > 0)
      return {fmt::format("rank {}: {}", rank, problem), all[rank][1]};
    if (!problem.empty()) break;
  }
  return all[0];
}

/// Loss, traffic and memory; what is wrong with them becomes the end of the case.
template <class T>
bool verify(CaseRun<T>& run, const Config& config, const CaseContext& context,
            const Json& reference, const std::string& reference_name, Json& result) {
  const bool memory_as_planned = check_memory(run, context, result);
  const Verification verification =
      run.train([&] { check_time(context); }, context.study.verify.steps);
  LossVerdict loss = judge_losses(verification, reference, reference_name,
                                  loss_tolerance(config, context.study.verify.tolerance));
  const Json agreed =
      conclude_json(context.ranks, {loss.problem, loss.document.at("verdict")}, first_problem);
  std::string problem = agreed[0];
  loss.document["verdict"] = agreed[1];
  result["loss"] = loss.document;
  result["traffic"] = verified_traffic(context.ranks, run.mesh(), verification);
  if (problem.empty() && !result["traffic"]["as_planned"].get<bool>())
    problem = "measured traffic differs from the plan";
  if (problem.empty() && !memory_as_planned) problem = "allocated memory differs from the plan";
  if (!problem.empty()) end_case(result, ExitCode::wrong_result, problem);
  return problem.empty();
}

/// The instrumented steps, and how they compare with what was predicted of their parts.
template <class T>
void explain(CaseRun<T>& run, const Case& point, const AttemptContext& attempt,
             const CaseContext& context, Json& result) {
  const Size steps = context.study.measure.instrumented_steps;
  const std::vector<RankTrace> traces = run.instrument(steps);
  collectively(context.ranks, [&] {
    if (context.ranks.rank() != 0) return;
    const Breakdown breakdown = break_down(traces, steps);
    if (attempt.options.traces)
      attempt.results.write(ResultsDirectory::of_case(point.id, "trace.json"),
                            chrome_trace(traces));
    if (run.plan().input.has_stages())
      result["pipeline"]["timeline"] = timeline_json(run.plan(), traces);
    result["breakdown"] = breakdown;
    if (const auto& predicted = context.state.predicted)
      result["explanation"] = explanation_json(*predicted, breakdown, run.plan());
    add_call_times(result["traffic"], run.plan(), breakdown);
  });
}

/// Verification and the instrumented steps; false if the case is invalid.
template <class T>
bool begin(CaseRun<T>& run, const Case& point, const AttemptContext& attempt,
           const CaseContext& context, const Json& reference, Json& result) {
  const MeasureRules& rules = context.study.measure;
  result["compute"] = rates_json(run.plan(), context, std::nullopt);
  attempt.last_word.enter("verification");
  if (!verify(run, point.config, context, reference, reference_name(point.config), result))
    return false;
  attempt.last_word.enter("warm-up");
  inject_failure(attempt.options, context.ranks.rank());
  run.warm_up(rules.warm_up, [&] { check_time(context); });
  attempt.last_word.enter("instrumented steps");
  explain(run, point, attempt, context, result);
  if (const CheckpointConfig& config = point.config.checkpoint; config.enabled()) {
    attempt.last_word.enter("checkpoints");
    result["checkpoint"] = checkpoint_json(
        config, run.time_checkpoints(fmt::format("{}/{}", config.directory, point.id),
                                     rules.checkpoints, [&] { check_time(context); }));
  }
  return true;
}

template <class T>
void run_typed(CaseRun<T>& run, bool is_new, const Case& point, const AttemptContext& attempt,
               const Json& reference, CaseState& state) {
  const CaseContext context{attempt.study, attempt.launch.group(point).ranks, state};
  Json& result = state.result;
  if (!is_measured(result)) {
    if (!begin(run, point, attempt, context, reference, result)) return;
    state.block_steps = choose_block(run, context);
  } else if (is_new) {
    attempt.last_word.enter("warm-up");
    run.warm_up(attempt.study.measure.warm_up, [&] { check_time(context); });
  }
  attempt.last_word.enter("timed steps");
  measure_block(run, attempt, context, state);
  check_time(context);
  if (!run.is_finite())
    return end_case(result, ExitCode::wrong_result,
                    "the loss became infinite or NaN during the timed steps");
  std::vector<double> steps;
  for (const std::vector<double>& block : state.steps)
    steps.insert(steps.end(), block.begin(), block.end());
  const Statistics statistics = statistics_of(state.rounds, steps);
  result["rounds"] = state.rounds;
  result["step_seconds"] = statistics_json(statistics, attempt.study.measure);
  result["samples_per_second"] = static_cast<double>(point.batch()) / statistics.median;
  result["compute"] = rates_json(run.plan(), context, statistics.median);
  // What nothing was held against is not called right.
  const bool is_verified = result.at("loss").at("verdict") == "equal";
  result["status"] = is_verified ? "ok" : "unverified";
  result["exit_code"] = 0;
}

}  // namespace

Size block_steps(const MeasureRules& rules, double step_seconds) {
  const auto per_round = [&](Size steps) { return (steps + rules.rounds - 1) / rules.rounds; };
  const double wanted = std::min(std::ceil(rules.block_seconds / step_seconds), 1e9);
  return std::max(per_round(rules.steps),
                  std::min(per_round(rules.max_steps), static_cast<Size>(wanted)));
}

void run_round(const Case& point, const AttemptContext& context, const Json& reference,
               CaseState& state) {
  const Communicator& ranks = context.launch.group(point).ranks;
  const bool is_new = !state.run;
  if (state.result.at("status") == "running")
    // If the machine was busy before, the case must not seem faster than possible.
    state.gemm_peak =
        std::max(context.launch.peak(point),
                 gemm_peak(ranks, gemm_type(point.config), context.study.measure.gemm_size, 3));
  if (is_new)
    state.run = with_compute_type(compute_type(point.config), [&](auto t) {
      return std::make_unique<AnyCaseRun>(std::in_place_type<CaseRun<decltype(t)>>, point.config,
                                          ranks);
    });
  std::visit([&](auto& run) { run_typed(run, is_new, point, context, reference, state); },
             *state.run);
}

}  // namespace tessera::bench
