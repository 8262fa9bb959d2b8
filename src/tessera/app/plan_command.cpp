// SPDX-License-Identifier: Apache-2.0
#include <tessera/app/advice_text.hpp>
#include <tessera/app/commands.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/plan/plan_text.hpp>
#include <tessera/predict/machine_file.hpp>
#include <tessera/process/progress.hpp>
#include <tessera/process/standard_streams.hpp>

namespace tessera {
namespace {

/// The text to print, and the document for --json.
struct Findings {
  std::string text;
  nlohmann::json document{};
};

Findings advice_on(const Config& config, const PlanOptions& options) {
  if (options.machine.empty())
    throw ConfigError("--advise", "on", "needs --machine FILE, as in inputs/machines");
  const Machine machine = load_machine(options.machine);
  const Activity activity("searching for the fastest configuration");
  const Advice advice = advise(config, planned_ranks(config), machine);
  return {advice_text(advice, machine), advice_json(advice, machine)};
}

Findings plan_of(const Config& config, const PlanOptions& options) {
  const Topology topology = planned_topology(config);
  validate(config, topology);
  const Plan plan = make_plan(plan_input(config, resolve_mesh(config, topology)));
  Findings found{to_text(plan, topology)};
  if (!options.json.empty()) found.document = to_json(plan, topology);
  if (!options.machine.empty()) {
    const Machine machine = load_machine(options.machine);
    const SimulatedStep step = simulate(plan, cost_on(machine, plan));
    found.text += step_text(plan, machine, step);
    found.document["predicted"] = to_json(machine, step);
  }
  return found;
}

}  // namespace

ExitCode plan_command(const PlanOptions& options) {
  set_progress_mode(options.progress);
  if (!options.json.empty()) check_writable("--json", options.json);
  Config config = load_config(options.source);
  count_samples(config);
  const Findings found = options.advises ? advice_on(config, options) : plan_of(config, options);
  if (!options.json.empty()) write_json(options.json, found.document);
  print_output(found.text);
  return ExitCode::ok;
}

}  // namespace tessera
