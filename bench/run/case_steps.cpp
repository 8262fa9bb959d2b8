// SPDX-License-Identifier: Apache-2.0
#include "run/case_steps.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>

#include "measure/case_run.hpp"
#include "measure/chrome_trace.hpp"
#include "measure/slowest.hpp"
#include "measure/statistics.hpp"
#include "results/documents.hpp"
#include "run/reference.hpp"
#include "run/traffic_rows.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// What the phases of a case share.
struct CaseContext {
  const Study& study;
  const Communicator& ranks;  ///< of the case
  Calibration calibration;
  const Timer& clock;
};

void check_time(const CaseContext& context) {
  collectively(context.ranks, [&] {
    const double limit = context.study.limits.case_seconds;
    if (context.clock.seconds() > limit)
      throw Error(ExitCode::timeout, fmt::format("took longer than the limit of {:g} s", limit));
  });
}

/// The rank that --inject-throw or --inject-stall names fails, to see what a study makes of it.
void inject_failure(const RunOptions& options, int rank) {
  if (rank == options.throwing_rank) throw std::runtime_error("thrown by --inject-throw");
  if (rank == options.stalling_rank) std::this_thread::sleep_for(std::chrono::hours(1));
}

/// Steps of the next block: a first look, then what is asked for, then half as many again.
Size next_block(const MeasureRules& rules, Size done) {
  if (done < rules.steps) return std::min(rules.steps - done, done == 0 ? Size{10} : rules.steps);
  return std::min(rules.max_steps - done, std::max<Size>(10, done / 2));
}

/// Step times of the slowest rank. Between blocks, ranks agree on how it went and on the time.
template <class T>
std::vector<double> measure(CaseRun<T>& run, const CaseContext& context) {
  const MeasureRules& rules = context.study.measure;
  std::vector<double> all;
  for (;;) {
    const Size done = static_cast<Size>(all.size());
    std::vector<double> block = run.time_steps(next_block(rules, done));
    block.push_back(context.clock.seconds());
    block = slowest(context.ranks, block);
    const double elapsed = block.back();
    all.insert(all.end(), block.begin(), block.end() - 1);
    const Size n = static_cast<Size>(all.size());
    if (n < rules.steps) {
      check_time(context);
      continue;
    }
    const bool is_late = elapsed > context.study.limits.case_seconds / 2;
    if (is_late || n >= rules.max_steps || is_within(statistics_of(all), rules.ci)) return all;
  }
}

template <class T>
bool check_memory(const CaseRun<T>& run, const CaseContext& context, Json& result) {
  const std::vector<Json> ranks =
      gather_json(context.ranks, {run.planned_bytes(), run.measured_bytes()});
  bool as_planned = true;
  for (const Json& rank : ranks) as_planned &= rank[0] == rank[1];
  result["memory"]["as_planned"] = as_planned;
  result["memory"]["measured_bytes"] = ranks[largest_memory(run.plan()).rank][1];
  return as_planned;
}

/// The rates of a step of this length.
Json compute_json(const Plan& plan, const CaseContext& context, std::optional<double> seconds) {
  const auto ranks = static_cast<double>(plan.input.mesh.num_ranks());
  const auto flops = static_cast<double>(plan.flops.total());
  const double peak = context.calibration.gemm_flops_per_second * ranks;
  const auto& vendor = context.study.limits.vendor_peak_flops_per_second;
  const Json rate = seconds ? Json(flops / *seconds) : Json();
  return {{"flops_per_step", flops},
          {"flops_per_second", rate},
          {"flops_per_second_per_rank", seconds ? Json(flops / *seconds / ranks) : Json()},
          {"gemm_peak_flops_per_second", peak},
          {"mfu", seconds ? Json(flops / *seconds / peak) : Json()},
          {"vendor_peak_flops_per_second", vendor ? Json(*vendor * ranks) : Json()},
          {"vendor_mfu", vendor && seconds ? Json(flops / *seconds / (*vendor * ranks)) : Json()}};
}

/// Loss, traffic and memory; what is wrong with them becomes the end of the case.
template <class T>
bool verify(CaseRun<T>& run, const CaseContext& context, const Json& reference,
            const std::string& reference_name, Json& result) {
  const bool memory_as_planned = check_memory(run, context, result);
  const Verification verification = run.train([&] { check_time(context); });
  LossVerdict loss = judge_losses(verification, reference, reference_name, context.study.tolerance);
  // Ranks along `model` compute their losses apart: the first one with a problem speaks for all.
  std::string problem;
  const std::vector<Json> all =
      gather_json(context.ranks, {loss.problem, loss.document.at("verdict")});
  for (std::size_t rank = 0; rank < all.size() && problem.empty(); ++rank) {
    problem = all[rank][0];
    if (problem.empty()) continue;
    loss.document["verdict"] = all[rank][1];
    if (rank > 0) problem = fmt::format("rank {}: {}", rank, problem);
  }
  result["loss"] = loss.document;
  result["traffic"] = verified_traffic(context.ranks, run.mesh(), verification);
  if (problem.empty() && !result["traffic"]["as_planned"].get<bool>())
    problem = "measured traffic differs from the plan";
  if (problem.empty() && !memory_as_planned) problem = "allocated memory differs from the plan";
  if (!problem.empty()) end_case(result, ExitCode::wrong_result, problem);
  return problem.empty();
}

/// The launch's calibration with the better of its peak and one of now: if the machine was busy
/// then, the case must not seem faster than possible.
Calibration recalibrated(Calibration made, const Communicator& ranks, Size gemm_size) {
  made.gemm_flops_per_second =
      std::max(made.gemm_flops_per_second, gemm_rate(ranks, made.dtype, gemm_size, 3));
  return made;
}

template <class T>
std::vector<double> run_typed(const Case& point, const AttemptContext& attempt,
                              const Json& reference, const Timer& clock, Json& result) {
  const MeasureRules& rules = attempt.study.measure;
  const Communicator& ranks = attempt.launch.group(point).ranks;
  const CaseContext context{attempt.study, ranks,
                            recalibrated(attempt.launch.calibration(point), ranks, rules.gemm_size),
                            clock};
  CaseRun<T> run(point.config, ranks);
  result["compute"] = compute_json(run.plan(), context, std::nullopt);
  result["prediction"] = predict(run.plan(), context.calibration);
  attempt.last_word.enter("verification");
  if (!verify(run, context, reference, reference_name(point.config), result)) return {};

  attempt.last_word.enter("warm-up");
  inject_failure(attempt.options, ranks.rank());
  run.warm_up(rules.warm_up, [&] { check_time(context); });
  attempt.last_word.enter("timed steps");
  const std::vector<double> seconds = measure(run, context);
  const Statistics statistics = statistics_of(seconds);
  attempt.last_word.enter("instrumented steps");
  const std::vector<RankTrace> traces = run.instrument(rules.instrumented_steps);
  const Breakdown breakdown = break_down(traces, rules.instrumented_steps);
  if (!run.is_finite()) {
    end_case(result, ExitCode::wrong_result,
             "the loss became infinite or NaN during the timed steps");
    return {};
  }
  if (attempt.options.traces && ranks.rank() == 0)
    attempt.results.write(ResultsDirectory::of_case(point.id, "trace.json"), chrome_trace(traces));
  result["step_seconds"] = statistics_json(statistics, rules);
  result["samples_per_second"] = static_cast<double>(point.batch()) / statistics.median;
  result["breakdown"] = breakdown;
  result["compute"] = compute_json(run.plan(), context, statistics.median);
  add_call_times(result["traffic"], run.plan(), breakdown);
  result["status"] = "ok";
  result["exit_code"] = 0;
  return seconds;
}

}  // namespace

std::vector<double> run_case(const Case& point, const AttemptContext& context,
                             const Json& reference, const Timer& clock, Json& result) {
  const auto run =
      point.config.model.dtype == DType::float64 ? run_typed<double> : run_typed<float>;
  return run(point, context, reference, clock, result);
}

}  // namespace tessera::bench
