// SPDX-License-Identifier: Apache-2.0
#include <tessera/app/commands.hpp>
#include <tessera/app/result_file.hpp>
#include <tessera/base/standard_streams.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/plan/plan_text.hpp>

namespace tessera {

ExitCode plan_command(const PlanOptions& options) {
  if (!options.json.empty()) check_writable("--json", options.json);
  const Config config = load_config(options.source);
  const Topology topology = planned_topology(config);
  validate(config, topology);
  const Plan plan = make_plan(plan_input(config, resolve_mesh(config, topology)));
  print_output(to_text(plan, topology));
  if (!options.json.empty()) write_json(options.json, to_json(plan, topology));
  return ExitCode::ok;
}

}  // namespace tessera
