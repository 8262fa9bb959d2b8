// SPDX-License-Identifier: Apache-2.0
#include "run/simulate.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/predict/machine_file.hpp>
#include <tessera/process/progress.hpp>
#include <tessera/process/provenance.hpp>
#include <tessera/process/standard_streams.hpp>

#include "results/result_parts.hpp"
#include "results/summary.hpp"
#include "run/attempt.hpp"
#include "run/console.hpp"
#include "run/explanation.hpp"
#include "run/predicted_time.hpp"
#include "run/traffic_rows.hpp"
#include "run/untried.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// Returns the predicted step as a breakdown.
Breakdown breakdown_of(const SimulatedStep& step) {
  const auto all = [](double seconds) { return Share{seconds, seconds}; };
  Breakdown breakdown;
  breakdown.steps = 1;
  breakdown.step_seconds = step.step_seconds;
  breakdown.products = all(step.products);
  breakdown.compute = all(step.products + step.kernels);
  breakdown.communication = all(step.communication());
  breakdown.idle = all(step.waiting());
  breakdown.optimizer = all(step.update);
  for (const SimulatedStep::Call& call : step.calls)
    breakdown.calls.push_back({call.axis, call.operation, call.calls, call.seconds, call.waiting});
  return breakdown;
}

/// Rank-seconds of a study with one launch per case.
struct RankSeconds {
  double cases = 0, references = 0;
  std::string text() const {
    const double all = std::max(cases + references, 1e-30);
    return fmt::format("{:.3g} rank-hours of steps, and {:.3g} for references ({:.1f} % of all)\n",
                       cases / 3600, references / 3600, 100 * references / all);
  }
};

/// Predicts the cases of a study on a machine.
class Simulation {
 public:
  Simulation(const Study& study, const Machine& machine, std::string launch)
      : study_(study), machine_(machine), launch_(std::move(launch)) {
    Limits& limits = study_.limits;
    limits.memory_bytes =
        std::min(limits.memory_bytes.value_or(machine.memory_bytes), machine.memory_bytes);
  }

  CaseResult result_of(const Case& point) const {
    CaseResult result =
        point.skip_reason ? skipped_result(study_, point, launch_) : new_result(study_, point);
    result.simulated = machine_.name;
    if (point.skip_reason) return result;
    result.attempt = 1;
    result.launches = 1;
    result.launch = launch_;
    result.started = utc_time();
    const Outcome outcome = outcome_of([&] { simulate_case(point, result); });
    if (outcome.failed()) result.end(outcome.code, outcome.message);
    result.finished = utc_time();
    return result;
  }

  double reference_seconds(const Case& point, std::set<std::string>& made) const {
    return time_.reference_seconds(point, made);
  }

 private:
  void simulate_case(const Case& point, CaseResult& result) const {
    if (const auto threads = point.config.training.distributed.threads)
      throw ConfigError("distributed.threads", std::to_string(*threads),
                        "cannot be simulated: a machine file does not describe threads");
    const Plan plan = plan_of(point.config, point.ranks());
    if (!add_plan(result, plan, study_.limits)) return;
    const SimulatedStep step = simulate(plan, cost_on(machine_, plan));
    const Breakdown breakdown = breakdown_of(step);
    result.step_seconds = step_times(statistics_of({step.step_seconds}), study_.measure);
    result.rounds = {{launch_, 0, step.step_seconds, {1, 1}}};
    result.samples_per_second = static_cast<double>(point.batch()) / step.step_seconds;
    result.breakdown = breakdown;
    result.traffic = planned_traffic(plan);
    add_call_times(*result.traffic, plan, breakdown);
    result.compute = flop_rates(plan, product_rate(machine_, plan.input),
                                study_.limits.vendor_peak_flops_per_second, step.step_seconds);
    result.wall_seconds = time_.case_seconds(point, step.step_seconds);
    result.status = "ok";
    result.exit_code = 0;
  }

  Study study_;
  const Machine& machine_;
  const PredictedTime time_{study_, machine_};
  std::string launch_;
};

Json launch_document(const SimulateOptions& options, const Study& study, const Machine& machine,
                     const std::vector<Case>& cases) {
  Json document{{"schema_version", 1},
                {"name", "simulated-" + machine.name},
                {"seed", study.seed},
                {"order", Json::array()},
                {"calibration", Json::array()},
                {"calibration_seconds", 0},
                {"machines", Json::array({machine_json(machine)})},
                {"simulated", machine_json(machine)},
                {"provenance", build_provenance(options.arguments)}};
  Size ranks = 0;
  for (const Case& point : cases) {
    document["order"].push_back(point.id);
    ranks = std::max(ranks, point.ranks());
  }
  document["ranks"] = ranks;
  return document;
}

}  // namespace

ExitCode simulate_study(const SimulateOptions& options) {
  StudyCases work{load_study(options.source), {}};
  const auto& [study, cases] = work;
  const Machine machine = load_machine(options.machine);
  work.cases = make_cases(study);
  const ResultsDirectory results(options.directory);
  results.prepare(work, false);
  Json launch = launch_document(options, study, machine, cases);
  const std::string name = launch.at("name");
  results.write("launches/" + name + ".json", launch);
  const Simulation simulation(study, machine, name);
  std::set<std::string> made;
  RankSeconds spent;
  Activity activity("simulating cases");
  for (const Case& point : cases) {
    activity.update("simulating " + point.id);
    const CaseResult result = simulation.result_of(point);
    const auto ranks = static_cast<double>(point.ranks());
    if (result.status == "ok") {
      spent.cases += ranks * *result.wall_seconds;
      spent.references += ranks * simulation.reference_seconds(point, made);
      results.write_steps(result, {{result.step_seconds->median}});
    }
    results.write_result(result);
  }
  const Summary summary = write_summary(results);
  const std::vector<Untried> next = untried(summary, cases, [&](const Case&) { return &machine; });
  launch["untried"] = next;
  results.write("launches/" + name + ".json", launch);
  print_output(fmt::format("Simulated on machine {}: nothing was measured\n\n{}{}\n{}",
                           machine.name, summary_table(summary), untried_text(next), spent.text()));
  print_result_line(summary.result, result_text(summary) + " in " + results.path().string());
  return summary.exit_code;
}

}  // namespace tessera::bench
