// SPDX-License-Identifier: Apache-2.0
// The steps of a round.
#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/trace/chrome_trace.hpp>

#include "measure/machine_speed.hpp"
#include "measure/statistics.hpp"
#include "run/case_rounds.hpp"
#include "run/reference_plan.hpp"
#include "run/references.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// Returns the {problem, verdict} of the first rank with a problem, or of rank 0. Ranks along
/// `model` compute their losses separately.
Json first_problem(const std::vector<Json>& all) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::string problem = all[rank][0];
    if (!problem.empty() && rank > 0)
      return {fmt::format("rank {}: {}", rank, problem), all[rank][1]};
    if (!problem.empty()) break;
  }
  return all[0];
}

/// Returns the configuration of a case, with metrics that are written into the results.
Config with_own_files(const Case& point, const ResultsDirectory& results) {
  Config config = point.config;
  OutputConfig& output = config.output;
  if (!output.metrics.empty())
    output.metrics = results.path() / ResultsDirectory::of_case(point.id, "metrics.jsonl");
  if (!output.tensorboard.empty()) output.tensorboard = results.path() / "tensorboard" / point.id;
  return config;
}

}  // namespace

void CaseRounds::run_steps(const FoundReference& reference) {
  const MeasureRules& rules = study_.measure;
  const bool is_first_round = round_ == 0;
  // Measured before the case needs memory.
  const double peak =
      is_first_round ? gemm_peak(ranks(), gemm_type(point_.config), rules.gemm_size, 5) : 0;
  const bool is_new = !run_;
  if (is_new) run_ = CaseRun::make(with_own_files(point_, launch_.results), ranks());
  if (is_first_round) {
    result_.compute =
        flop_rates(run_->plan(), peak, study_.limits.vendor_peak_flops_per_second, {});
    if (!verify_and_instrument(reference)) return;
    block_steps_ = block_steps(rules, median(slowest(ranks(), run_->time_steps(3))));
  } else if (is_new) {
    warm_up();
  }
  launch_.abort_record.enter("timed steps");
  measure_block();
  check_time();
  if (!run_->is_finite())
    return result_.end(ExitCode::wrong_result,
                       "the loss became infinite or NaN during the timed steps");
  // Without a reference, nothing shows that the losses are right.
  result_.status = result_.loss->verdict == "equal" ? "ok" : "unverified";
  result_.exit_code = 0;
}

void CaseRounds::warm_up() {
  launch_.abort_record.enter("warm-up");
  run_->warm_up(study_.measure.warm_up, [this] { check_time(); });
}

bool CaseRounds::verify_and_instrument(const FoundReference& reference) {
  const MeasureRules& rules = study_.measure;
  const auto check = [this] { check_time(); };
  launch_.abort_record.enter("verification");
  if (!verify(reference)) return false;
  launch_.abort_record.enter("warm-up");
  if (has_fault(Fault::Kind::throws)) throw std::runtime_error("thrown by --inject");
  if (has_fault(Fault::Kind::stalls)) std::this_thread::sleep_for(std::chrono::hours(1));
  warm_up();
  launch_.abort_record.enter("instrumented steps");
  instrument();
  const CheckpointConfig& config = point_.config.checkpoint;
  if (!config.enabled()) return true;
  launch_.abort_record.enter("checkpoints");
  const std::string directory = fmt::format("{}/{}", config.directory, point_.id);
  result_.checkpoint = run_->time_checkpoints(directory, rules.checkpoints, check);
  return true;
}

bool CaseRounds::verify(const FoundReference& reference) {
  const bool memory_as_planned = check_memory();
  const Verification verification = run_->train([this] { check_time(); }, study_.verify.steps);
  LossVerdict loss = judge_losses(verification, reference, reference_name(point_.config),
                                  loss_tolerance(point_.config, study_.verify.tolerance));
  const Json agreed = conclude_json(ranks(), {loss.problem, loss.loss.verdict}, first_problem);
  std::string problem = agreed[0];
  loss.loss.verdict = agreed[1];
  result_.loss = std::move(loss.loss);
  result_.traffic = verified_traffic(ranks(), run_->plan().input.mesh, verification);
  if (problem.empty() && !*result_.traffic->as_planned)
    problem = "measured traffic differs from the plan";
  if (problem.empty() && !memory_as_planned) problem = "allocated memory differs from the plan";
  if (!problem.empty()) result_.end(ExitCode::wrong_result, problem);
  return problem.empty();
}

bool CaseRounds::check_memory() {
  const Json agreed = conclude_json(
      ranks(), {run_->planned_bytes(), run_->measured_bytes()},
      [&](const std::vector<Json>& all) -> Json {
        const bool as_planned = std::all_of(all.begin(), all.end(),
                                            [](const Json& rank) { return rank[0] == rank[1]; });
        const auto largest = static_cast<std::size_t>(largest_memory(run_->plan()).rank);
        return {as_planned, all[largest][1]};
      });
  result_.memory->as_planned = agreed[0].get<bool>();
  result_.memory->measured_bytes = agreed[1].get<Size>();
  return agreed[0];
}

void CaseRounds::instrument() {
  const Size steps = study_.measure.instrumented_steps;
  const std::vector<RankTrace> traces = run_->instrument(steps);
  collectively(ranks(), [&] {
    if (ranks().rank() != 0) return;
    result_.breakdown = break_down(traces, steps);
    if (launch_.options.traces)
      launch_.results.write(ResultsDirectory::of_case(point_.id, "trace.json"),
                            chrome_trace(traces));
    add_call_times(*result_.traffic, run_->plan(), *result_.breakdown);
  });
}

void CaseRounds::measure_block() {
  const MachineProbe& probe = launch_.probe();
  const MachineSpeed before = probe.measure(ranks());
  std::vector<double> block = run_->time_steps(block_steps_);
  block.push_back(seconds());
  block = slowest(ranks(), block);
  is_done_ = block.back() > study_.limits.case_seconds / 2;
  block.pop_back();
  block_ = {launch_.name(), launch_.seconds(), median(block), mean(before, probe.measure(ranks()))};
  step_times_ = std::move(block);
}

}  // namespace tessera::bench
