// SPDX-License-Identifier: Apache-2.0
#include "run/case_steps.hpp"

#include <algorithm>

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
#include "run/last_word.hpp"
#include "run/reference.hpp"
#include "run/traffic_rows.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

void check_time(const CaseContext& context) {
  collectively(context.ranks, [&] {
    const double limit = context.study.limits.case_seconds;
    if (context.clock.seconds() > limit)
      throw Error(ExitCode::timeout, fmt::format("took longer than the limit of {:g} s", limit));
  });
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

/// The first rank's problem with its losses, empty if no rank has any; ranks along `model` compute
/// theirs apart. Its verdict becomes that of the case.
std::string agreed_problem(const Communicator& ranks, Json& loss) {
  const std::vector<Json> all =
      gather_json(ranks, {{"problem", loss_problem(loss)}, {"verdict", loss.at("verdict")}});
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::string problem = all[rank].at("problem");
    if (problem.empty()) continue;
    loss["verdict"] = all[rank].at("verdict");
    return rank == 0 ? problem : fmt::format("rank {}: {}", rank, problem);
  }
  return "";
}

/// Loss, traffic and memory; false if one of them makes the case invalid.
template <class T>
bool verify(CaseRun<T>& run, const CaseContext& context, Json& result) {
  const bool memory_as_planned = check_memory(run, context, result);
  const Verification verification = run.train([&] { check_time(context); });
  result["loss"] = compare_losses(verification, context.reference, context.reference_name,
                                  context.study.tolerance);
  result["traffic"] = verified_traffic(context.ranks, run.mesh(), verification);
  std::string problem = agreed_problem(context.ranks, result["loss"]);
  if (problem.empty() && !result["traffic"]["as_planned"].get<bool>())
    problem = "measured traffic differs from the plan";
  if (problem.empty() && !memory_as_planned) problem = "allocated memory differs from the plan";
  if (!problem.empty()) end_case(result, ExitCode::wrong_result, problem);
  return problem.empty();
}

/// The launch's calibration with the better of its peak and one of now: if the machine was busy
/// then, the case must not seem faster than possible.
Calibration recalibrated(const CaseContext& context) {
  Calibration made = context.calibration;
  made.gemm_flops_per_second =
      std::max(made.gemm_flops_per_second,
               gemm_rate(context.ranks, made.dtype, context.study.measure.gemm_size, 3));
  return made;
}

template <class T>
std::vector<double> run_typed(const Case& point, CaseContext context, Json& result) {
  context.calibration = recalibrated(context);
  CaseRun<T> run(point.config, context.ranks);
  result["compute"] = compute_json(run.plan(), context, std::nullopt);
  result["prediction"] = predict(run.plan(), context.calibration);
  context.enter("verification");
  if (!verify(run, context, result)) return {};

  const MeasureRules& rules = context.study.measure;
  context.enter("warm-up");
  if (context.fault) inject(*context.fault, context.ranks.rank());
  run.warm_up(rules.warm_up, [&] { check_time(context); });
  context.enter("timed steps");
  const std::vector<double> seconds = measure(run, context);
  const Statistics statistics = statistics_of(seconds);
  context.enter("instrumented steps");
  const std::vector<RankTrace> traces = run.instrument(rules.instrumented_steps);
  const MeshShape& mesh = run.plan().input.mesh;
  const Breakdown breakdown = break_down(mesh, traces, rules.instrumented_steps);
  if (context.keep_trace && context.ranks.rank() == 0)
    context.keep_trace(chrome_trace(mesh, traces));
  if (!run.is_finite()) {
    end_case(result, ExitCode::wrong_result,
             "the loss became infinite or NaN during the timed steps");
    return {};
  }
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

std::vector<double> run_case(const Case& point, const CaseContext& context, Json& result) {
  return point.config.model.dtype == DType::float64 ? run_typed<double>(point, context, result)
                                                    : run_typed<float>(point, context, result);
}

}  // namespace tessera::bench
