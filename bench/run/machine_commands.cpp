// SPDX-License-Identifier: Apache-2.0
// The commands of machine files: calibrate writes one, simulate reads it.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/comm/backend.hpp>
#include <tessera/comm/nodes.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/nn/products/gemm.hpp>
#include <tessera/predict/machine_file.hpp>
#include <tessera/process/progress.hpp>
#include <tessera/process/provenance.hpp>
#include <tessera/process/standard_streams.hpp>

#include "measure/machine_speed.hpp"
#include "results/result_parts.hpp"
#include "results/summary.hpp"
#include "run/commands.hpp"
#include "run/console.hpp"
#include "run/jobs.hpp"

namespace tessera::bench {
namespace {

void check_launch(const Topology& topology) {
  if (topology.ranks() < 2)
    throw Error(ExitCode::usage, "calibrate needs 2 ranks or more, to measure links between them");
  if (!topology.per_node())
    throw Error(ExitCode::usage,
                "calibrate needs the same number of ranks on every node; the launch has nodes: {}",
                nodes_text(topology));
}

/// Returns the types of products that a machine file may name, and that this machine multiplies.
std::map<std::string, GemmType> all_types() {
  std::map<std::string, GemmType> types;
  for (const DType type : {DType::float64, DType::float32, DType::bfloat16, DType::float16})
    types[std::string(name_of(type))] = {type};
  if (has_native_tf32()) types["tf32"] = {DType::float32, MatmulPrecision::tf32};
  return types;
}

using Json = nlohmann::json;

/// Returns the predicted step as a breakdown.
Breakdown breakdown_of(const SimulatedStep& step) {
  const auto all = [](double seconds) { return Share{seconds, seconds}; };
  Breakdown breakdown;
  breakdown.steps = 1;
  breakdown.step_seconds = step.step_seconds;
  breakdown.products = all(step.products.work);
  breakdown.compute = all(step.products.work + step.kernels.work);
  breakdown.communication = all(step.communication());
  breakdown.idle = all(step.waiting());
  breakdown.optimizer = all(step.update.work);
  breakdown.launches = all(step.launches());
  for (const SimulatedStep::Call& call : step.calls)
    breakdown.calls.push_back({call.axis, call.operation, call.calls, call.seconds, call.waiting});
  return breakdown;
}

/// Predicts a case. `study` has the memory limit of the machine.
void simulate_case(const Case& point, const Study& study, const Machine& given,
                   CaseResult& result) {
  const Machine& machine = given.of_threads(point.config.training.distributed.threads.value_or(0));
  const Plan plan = plan_of(point.config, point.ranks(), machine.traits());
  if (!add_plan(result, plan, study.limits)) return;
  const SimulatedStep step = simulate(plan, machine);
  const Breakdown breakdown = breakdown_of(step);
  result.step_seconds = {statistics_of({step.step_seconds}), study.measure.warm_up};
  result.samples_per_second = static_cast<double>(point.batch()) / step.step_seconds;
  result.breakdown = breakdown;
  result.traffic = planned_traffic(plan);
  add_call_times(*result.traffic, plan, breakdown);
  result.compute = flop_rates(plan, product_rate(machine, plan.input),
                              study.limits.vendor_peak_flops_per_second, step.step_seconds);
  result.status = "ok";
  result.exit_code = 0;
}

/// Returns what a launch would write at the end of the case.
End simulated_end(const Case& point, const Study& study, const Machine& machine,
                  const std::string& launch) {
  End end{point.id};
  CaseResult& result = end.result.emplace(new_result(study, point));
  result.simulated = machine.name;
  result.launch = launch;
  result.started = utc_time();
  const Outcome outcome = outcome_of([&] { simulate_case(point, study, machine, result); });
  if (outcome.failed()) result.end(outcome.code, outcome.message);
  end.time = utc_time();
  end.last = true;
  if (result.is_measured()) {
    end.block = {launch, 0, result.step_seconds->median, {1, 1}};
    end.steps = {result.step_seconds->median};
  }
  return end;
}

Json launch_document(const SimulateOptions& options, const Study& study, const Machine& machine,
                     const std::vector<Case>& cases) {
  Json document{{"schema_version", 1},
                {"name", word_of("simulated-" + machine.name)},
                {"seed", study.seed},
                {"order", Json::array()},
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

ExitCode calibrate_machine(const CalibrateOptions& options) {
  const Communicator world = Communicator::world();
  const std::filesystem::path file = options.output;
  collectively(world, [&] {
    if (world.rank() != 0) return;
    check_writable("-o", file);
    std::error_code unused;
    if (std::filesystem::exists(file, unused))
      throw ConfigError("-o", file.string(), "exists; choose another file");
  });
  const std::vector<Size> nodes = node_of_ranks(world);
  check_launch(Topology(nodes));
  const BackendFacts facts = backend_facts();
  // A shared machine changes its speed within seconds.
  constexpr int rounds = 7;
  std::vector<Machine> measured;
  for (int round = 0; round < rounds; ++round)
    measured.push_back(measure_machine(world, nodes, facts, options.gemm_size, all_types()));
  Machine machine = typical_machine(measured);
  machine.name = file.stem().string();
  machine.threads = Kokkos::num_threads();
  collectively(world, [&] {
    if (world.rank() != 0) return;
    const std::string text = fmt::format(
        "# Measured at {} on nodes: {}.\n# For more nodes of the same kind, raise "
        "`ranks` of the last "
        "level.\n{}",
        utc_time(), nodes_text(Topology(nodes)), machine_as_toml(machine));
    write_text(file, text);
    print_output(text);
  });
  return ExitCode::ok;
}

ExitCode simulate_study(const SimulateOptions& options) {
  StudyCases work{load_study(options.source), {}};
  const auto& [study, cases] = work;
  const Machine machine = load_machine(options.machine);
  work.cases = make_cases(study);
  const ResultsDirectory results(options.directory);
  check_results_apart(work, options.machine, results);
  results.prepare(work, false);
  const Json launch = launch_document(options, study, machine, cases);
  const std::string name = launch.at("name");
  // The directory holds no study's results, but perhaps what a failed simulation has left.
  std::error_code unused;
  std::filesystem::remove(results.path() / "launches" / (name + ".journal"), unused);
  Journal journal(results.path(), name, {});
  results.write("launches/" + name + ".json", launch);
  Study limited = study;
  std::optional<Size>& limit = limited.limits.memory_bytes;
  limit = std::min(limit.value_or(machine.memory_bytes), machine.memory_bytes);
  Activity activity("simulating cases");
  for (const Case& point : cases) {
    activity.update("simulating " + point.id);
    if (point.skip_reason) continue;
    journal.append(simulated_end(point, limited, machine, name));
  }
  const Summary summary = write_results(results);
  print_output(fmt::format("Simulated on machine {}: nothing was measured\n\n{}\n", machine.name,
                           summary_table(summary)));
  print_result_line(summary.result, result_text(summary) + " in " + results.path().string());
  return summary.exit_code;
}

}  // namespace tessera::bench
