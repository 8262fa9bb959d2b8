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
#include "run/reference_plan.hpp"
#include "run/traffic_rows.hpp"

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

/// A round of a case. All functions are collective over the ranks of the case.
template <class T>
class CaseRound {
 public:
  CaseRound(CaseRun<T>& run, const Case& point, const AttemptContext& attempt, CaseState& state)
      : run_(run),
        point_(point),
        attempt_(attempt),
        study_(attempt.study),
        ranks_(attempt.launch.group(point).ranks),
        state_(state),
        result_(state.result) {}

  void run(bool is_new, const FoundReference& reference) {
    if (!result_.is_measured()) {
      if (!verify_and_instrument(reference)) return;
      state_.block_steps = block_steps(study_.measure, median(slowest(ranks_, run_.time_steps(3))));
    } else if (is_new) {
      attempt_.abort_record.enter("warm-up");
      run_.warm_up(study_.measure.warm_up, check_time_);
    }
    attempt_.abort_record.enter("timed steps");
    measure_block();
    check_time_();
    if (!run_.is_finite())
      return end_case(result_, ExitCode::wrong_result,
                      "the loss became infinite or NaN during the timed steps");
    std::vector<double> steps;
    for (const std::vector<double>& block : state_.steps)
      steps.insert(steps.end(), block.begin(), block.end());
    const Statistics statistics = statistics_of(result_.rounds, steps);
    result_.step_seconds = statistics_json(statistics, study_.measure);
    result_.samples_per_second = static_cast<double>(point_.batch()) / statistics.median;
    result_.compute = rates_json(statistics.median);
    // Without a reference, nothing shows that the losses are right.
    result_.status = result_.loss.at("verdict") == "equal" ? "ok" : "unverified";
    result_.exit_code = 0;
  }

 private:
  /// Runs what comes once before the rounds: verification, warm-up, instrumented steps,
  /// checkpoints. Returns false if the case is invalid.
  bool verify_and_instrument(const FoundReference& reference) {
    const MeasureRules& rules = study_.measure;
    result_.compute = rates_json(std::nullopt);
    attempt_.abort_record.enter("verification");
    if (!verify(reference)) return false;
    attempt_.abort_record.enter("warm-up");
    inject_failure();
    run_.warm_up(rules.warm_up, check_time_);
    attempt_.abort_record.enter("instrumented steps");
    instrument();
    const CheckpointConfig& config = point_.config.checkpoint;
    if (!config.enabled()) return true;
    attempt_.abort_record.enter("checkpoints");
    const std::string directory = fmt::format("{}/{}", config.directory, point_.id);
    result_.checkpoint =
        checkpoint_json(config, run_.time_checkpoints(directory, rules.checkpoints, check_time_));
    return true;
  }

  /// Verifies losses, traffic and memory. Ends the case and returns false if one of them is wrong.
  bool verify(const FoundReference& reference) {
    const bool memory_as_planned = check_memory();
    const Verification verification = run_.train(check_time_, study_.verify.steps);
    LossVerdict loss = judge_losses(verification, reference, reference_name(point_.config),
                                    loss_tolerance(point_.config, study_.verify.tolerance));
    const Json agreed =
        conclude_json(ranks_, {loss.problem, loss.document.at("verdict")}, first_problem);
    std::string problem = agreed[0];
    loss.document["verdict"] = agreed[1];
    result_.loss = loss.document;
    result_.traffic = verified_traffic(ranks_, run_.mesh(), verification);
    if (problem.empty() && !result_.traffic["as_planned"].get<bool>())
      problem = "measured traffic differs from the plan";
    if (problem.empty() && !memory_as_planned) problem = "allocated memory differs from the plan";
    if (!problem.empty()) end_case(result_, ExitCode::wrong_result, problem);
    return problem.empty();
  }

  bool check_memory() {
    result_.memory.update(conclude_json(
        ranks_, {run_.planned_bytes(), run_.measured_bytes()},
        [&](const std::vector<Json>& ranks) -> Json {
          const bool as_planned = std::all_of(ranks.begin(), ranks.end(),
                                              [](const Json& rank) { return rank[0] == rank[1]; });
          const auto largest = static_cast<std::size_t>(largest_memory(run_.plan()).rank);
          return {{"as_planned", as_planned}, {"measured_bytes", ranks[largest][1]}};
        }));
    return result_.memory["as_planned"];
  }

  /// Runs the instrumented steps, and explains the difference between prediction and measurement.
  void instrument() {
    const Size steps = study_.measure.instrumented_steps;
    const std::vector<RankTrace> traces = run_.instrument(steps);
    collectively(ranks_, [&] {
      if (ranks_.rank() != 0) return;
      const Breakdown breakdown = break_down(traces, steps);
      if (attempt_.options.traces)
        attempt_.results.write(ResultsDirectory::of_case(point_.id, "trace.json"),
                               chrome_trace(traces));
      result_.breakdown = breakdown;
      if (const auto& predicted = state_.predicted)
        result_.explanation = explanation_json(*predicted, breakdown, run_.plan());
      add_call_times(result_.traffic, run_.plan(), breakdown);
    });
  }

  /// Times a block of steps, with the machine's speed before and after it. A case that has used
  /// half of its time limit is done in this launch.
  void measure_block() {
    const MachineProbe& probe = attempt_.launch.probe();
    const MachineSpeed before = probe.measure(ranks_);
    std::optional<SlowRank> slow;
    if (has_fault(Fault::Kind::slows)) slow.emplace(attempt_.options.fault->share);
    std::vector<double> steps = run_.time_steps(state_.block_steps);
    slow.reset();
    steps.push_back(state_.seconds());
    steps = slowest(ranks_, steps);
    state_.is_done = steps.back() > study_.limits.case_seconds / 2;
    steps.pop_back();
    result_.rounds.push_back({attempt_.launch.name(), attempt_.launch.seconds(), median(steps),
                              mean(before, probe.measure(ranks_))});
    state_.steps.push_back(std::move(steps));
  }

  /// Returns true if --inject plants this fault on this rank.
  bool has_fault(Fault::Kind kind) const {
    const std::optional<Fault>& fault = attempt_.options.fault;
    return fault && fault->kind == kind && fault->rank == ranks_.rank();
  }

  void inject_failure() const {
    if (has_fault(Fault::Kind::throws)) throw std::runtime_error("thrown by --inject");
    if (has_fault(Fault::Kind::stalls)) std::this_thread::sleep_for(std::chrono::hours(1));
  }

  /// Returns the FLOP rates of a step of this length.
  Json rates_json(std::optional<double> seconds) const {
    return compute_json(run_.plan(), state_.gemm_peak, study_.limits.vendor_peak_flops_per_second,
                        seconds);
  }

  CaseRun<T>& run_;
  const Case& point_;
  const AttemptContext& attempt_;
  const Study& study_;
  const Communicator& ranks_;
  CaseState& state_;
  CaseResult& result_;
  const CheckTime check_time_ = [this] {
    collectively(ranks_, [&] {
      const double limit = study_.limits.case_seconds;
      if (state_.seconds() > limit)
        throw Error(ExitCode::timeout, "took longer than the limit of {:g} s", limit);
    });
  };
};

}  // namespace

Size block_steps(const MeasureRules& rules, double step_seconds) {
  const auto per_round = [&](Size steps) { return (steps + rules.rounds - 1) / rules.rounds; };
  const double wanted = std::min(std::ceil(rules.block_seconds / step_seconds), 1e9);
  return std::max(per_round(rules.steps),
                  std::min(per_round(rules.max_steps), static_cast<Size>(wanted)));
}

void run_round(const Case& point, const AttemptContext& context, const FoundReference& reference,
               CaseState& state) {
  const Communicator& ranks = context.launch.group(point).ranks;
  const bool is_new = !state.run;
  if (state.result.status == "running")
    // The machine may have been busy when the launch measured the peak.
    state.gemm_peak =
        std::max(context.launch.peak(point),
                 gemm_peak(ranks, gemm_type(point.config), context.study.measure.gemm_size, 3));
  if (is_new)
    state.run = with_compute_type(compute_type(point.config), [&](auto t) {
      return std::make_unique<AnyCaseRun>(std::in_place_type<CaseRun<decltype(t)>>, point.config,
                                          ranks);
    });
  std::visit([&](auto& run) { CaseRound(run, point, context, state).run(is_new, reference); },
             *state.run);
}

}  // namespace tessera::bench
