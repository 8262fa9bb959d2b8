// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include <tessera/app/advice_text.hpp>
#include <tessera/app/commands.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/plan/plan_text.hpp>
#include <tessera/predict/machine_file.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/progress.hpp>
#include <tessera/process/standard_streams.hpp>
#include <tessera/train/config_files.hpp>

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
  Activity activity("searching for the fastest configuration");
  const SearchOptions search{.progress = [&](const SearchState& state) {
    if (activity.seconds_until_due() == 0) activity.update(progress_text(state));
  }};
  const Advice advice = advise(config, planned_ranks(config), machine, search);
  return {advice_text(advice, machine), advice_json(advice, machine)};
}

/// Says what the plan is for.
std::string device_line(const std::optional<Machine>& machine) {
  if (machine)
    return fmt::format("Plan for machine {}, device {}\n", machine->name, name_of(machine->device));
  return fmt::format("Plan for the device of this build, {}; --machine FILE plans for a machine\n",
                     name_of(this_device));
}

/// Below this utilization, something else than products takes most of a step.
constexpr double low_utilization = 0.05;

Findings plan_of(const Config& config, const PlanOptions& options) {
  const Topology topology = planned_topology(config);
  validate(config, topology);
  std::optional<Machine> machine;
  if (!options.machine.empty()) machine = load_machine(options.machine);
  const Target target = machine ? machine->target() : this_target();
  const Plan plan = make_plan(plan_input(config, resolve_mesh(config, topology), target));
  Findings found{device_line(machine) + to_text(plan, topology, options.parts)};
  if (!options.json.empty()) found.document = to_json(plan, topology, options.parts);
  if (!machine) return found;
  const SimulatedStep step = simulate(plan, cost_on(*machine, plan));
  const double utilization = model_flops_utilization(*machine, plan, step.step_seconds);
  found.text += step_text(plan, *machine, step) + memory_text(*machine, most_memory(plan));
  found.document["predicted"] = to_json(*machine, step);
  found.document["predicted"]["mfu"] = utilization;
  found.document["predicted"]["lacks_bytes"] =
      std::max(Size{0}, most_memory(plan) - machine->memory_bytes);
  if (utilization < low_utilization)
    log_warning(fmt::format("the predicted step reaches {:.2g} % of the machine's rate of products",
                            100 * utilization));
  return found;
}

}  // namespace

ExitCode plan_command(const PlanOptions& options) {
  set_progress_mode(options.progress);
  Config config = load_config(options.source);
  if (!options.json.empty()) {
    std::vector<FileUse> files = inputs_of(config);
    files.push_back({"configuration", options.source.file});
    files.push_back({"--machine", options.machine});
    files.push_back({"--json", options.json, true});
    check_distinct(files);
    check_writable("--json", options.json);
  }
  count_samples(config);
  const Findings found = options.advises ? advice_on(config, options) : plan_of(config, options);
  if (!options.json.empty()) write_json(options.json, found.document);
  print_output(found.text);
  return ExitCode::ok;
}

}  // namespace tessera
