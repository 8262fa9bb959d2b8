// SPDX-License-Identifier: Apache-2.0
#include <tessera/app/advice_text.hpp>
#include <tessera/app/commands.hpp>
#include <tessera/app/result_file.hpp>
#include <tessera/base/standard_streams.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/machine_file.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/plan/plan_text.hpp>

namespace tessera {
namespace {

nlohmann::json show_advice(const Config& config, const PlanOptions& options) {
  if (options.machine.empty())
    throw ConfigError("--advise", "on", "needs --machine FILE, as in inputs/machines");
  const Machine machine = load_machine(options.machine);
  const Advice advice = advise(config, planned_ranks(config), machine);
  print_output(advice_text(advice, machine));
  return advice_json(advice, machine);
}

nlohmann::json show_plan(const Config& config, const PlanOptions& options) {
  const Topology topology = planned_topology(config);
  validate(config, topology);
  const Plan plan = make_plan(plan_input(config, resolve_mesh(config, topology)));
  std::string text = to_text(plan, topology);
  nlohmann::json document;
  if (!options.json.empty()) document = to_json(plan, topology);
  if (!options.machine.empty()) {
    const Machine machine = load_machine(options.machine);
    const SimulatedStep step = simulate(plan, cost_on(machine, plan));
    text += step_text(plan, machine, step);
    document["predicted"] = to_json(machine, step);
  }
  print_output(text);
  return document;
}

}  // namespace

ExitCode plan_command(const PlanOptions& options) {
  if (!options.json.empty()) check_writable("--json", options.json);
  const Config config = load_config(options.source);
  const nlohmann::json document =
      options.advises ? show_advice(config, options) : show_plan(config, options);
  if (!options.json.empty()) write_json(options.json, document);
  return ExitCode::ok;
}

}  // namespace tessera
