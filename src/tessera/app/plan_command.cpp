// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include <tessera/app/advice_text.hpp>
#include <tessera/app/commands.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/plan/memory_timeline.hpp>
#include <tessera/plan/plan_text.hpp>
#include <tessera/predict/chakra.hpp>
#include <tessera/predict/machine_file.hpp>
#include <tessera/process/log.hpp>
#include <tessera/process/outcome.hpp>
#include <tessera/process/progress.hpp>
#include <tessera/process/standard_streams.hpp>
#include <tessera/train/config_files.hpp>

namespace tessera {
namespace {

/// The text to print, and the documents for --json and --timeline.
struct Findings {
  std::string text;
  nlohmann::json document{}, timeline{};
  Outcome traces{};  ///< of writing --chakra
};

Findings advice_on(const Config& config, const PlanOptions& options) {
  if (options.machine.empty())
    throw ConfigError("--advise", "on", "needs --machine FILE, as in inputs/machines");
  const Machine all = load_machine(options.machine);
  // Threads that are set are not chosen.
  const auto threads = config.training.distributed.threads;
  const Machine machine = threads ? Machine(all.of_threads(*threads)) : all;
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

/// Returns the memory of a rank during a step, and adds a line about its peak to the text.
nlohmann::json timeline_of(const Plan& plan, const PlanOptions& options, std::string& text) {
  const Size ranks = plan.input.mesh.num_ranks();
  const Size rank = options.timeline_rank.value_or(largest_memory(plan).rank);
  if (rank < 0 || rank >= ranks)
    throw ConfigError("--timeline-rank", std::to_string(rank),
                      fmt::format("must be 0 to {}", ranks - 1));
  nlohmann::json timeline = memory_timeline(plan, rank);
  const nlohmann::json& peak = timeline["peak"];
  text += fmt::format("Peak on rank {}: {} of {} in use, in {}\n", rank,
                      human_bytes(peak["in_use"]), human_bytes(timeline["memory"]["total"]),
                      timeline["actions"][peak["action"].get<Size>()]["text"].get<std::string>());
  return timeline;
}

/// Up to this number, all ranks get a trace by default.
constexpr Size most_traces = 1024;

/// Returns the ranks of --chakra-ranks. Throws ConfigError if one does not exist.
std::vector<Size> traced_ranks(std::vector<Size> chosen, Size ranks) {
  for (const Size rank : chosen)
    if (rank < 0 || rank >= ranks)
      throw ConfigError("--chakra-ranks", std::to_string(rank), "must be 0 to {}", ranks - 1);
  if (!chosen.empty()) return chosen;
  if (ranks > most_traces)
    throw ConfigError("--chakra-ranks", "all", "would be {} files; choose some, such as 0,8",
                      with_thousands(ranks));
  chosen.resize(static_cast<std::size_t>(ranks));
  std::iota(chosen.begin(), chosen.end(), Size{0});
  return chosen;
}

/// Writes the traces of --chakra and adds a line about them to the text.
void write_traces(const Plan& plan, const CostOf& cost, const std::vector<Size>& ranks,
                  const PlanOptions& options, std::string& text) {
  make_directory("--chakra", options.chakra);
  const std::filesystem::path directory = options.chakra, file = options.source.file;
  const Size uneven = write_chakra(plan, cost, ranks, directory / file.stem());
  text += fmt::format("Execution traces of {} in {}\n", counted(std::ssize(ranks), "rank"),
                      options.chakra);
  if (uneven > 0)
    log_warning(fmt::format("--chakra: {} have shares of unequal sizes; traces have their mean",
                            counted(uneven, "call")));
}

Findings plan_of(const Config& config, const PlanOptions& options) {
  const Topology topology = planned_topology(config);
  validate(config, topology);
  std::optional<Machine> machine;
  if (!options.machine.empty())
    machine =
        load_machine(options.machine).of_threads(config.training.distributed.threads.value_or(0));
  const DeviceTraits traits = machine ? machine->traits() : traits_of_this_device();
  const Plan plan = make_plan(plan_input(config, resolve_mesh(config, topology), traits));
  const Size memory = largest_memory(plan).memory.total();
  const std::string verdict = machine ? memory_text(*machine, memory) : "";
  const bool fits = !machine || memory <= machine->memory_bytes;
  Findings found{device_line(machine) + (fits ? "" : verdict) +
                 to_text(plan, topology, options.parts)};
  if (!options.json.empty()) found.document = to_json(plan, topology, options.parts);
  if (!options.timeline.empty()) found.timeline = timeline_of(plan, options, found.text);
  if (!options.chakra.empty()) {
    const CostOf cost = machine ? cost_on(*machine, plan) : CostOf();
    const std::vector<Size> ranks = traced_ranks(options.chakra_ranks, plan.input.mesh.num_ranks());
    found.traces = outcome_of([&] { write_traces(plan, cost, ranks, options, found.text); });
  }
  if (!machine) return found;
  const SimulatedStep step = simulate(plan, *machine);
  found.text += step_text(plan, *machine, step) + (fits ? verdict : "");
  found.document["predicted"] = step_json(plan, *machine, step);
  found.document["predicted"]["lacks_bytes"] = std::max(Size{0}, memory - machine->memory_bytes);
  const double utilization = found.document["predicted"]["mfu"];
  if (utilization < low_utilization)
    log_warning(fmt::format("the predicted step reaches {:.2g} % of the machine's rate of products",
                            100 * utilization));
  return found;
}

}  // namespace

ExitCode plan_command(const PlanOptions& options) {
  set_progress_mode(options.progress);
  Config config = load_config(options.source);
  if (!options.json.empty() || !options.timeline.empty() || !options.chakra.empty()) {
    std::vector<FileUse> files = inputs_of(config);
    files.push_back({"configuration", options.source.file});
    files.push_back({"--machine", options.machine});
    files.push_back({"--json", options.json, true});
    files.push_back({"--timeline", options.timeline, true});
    files.push_back({"--chakra", options.chakra, true, [](const std::string& file) {
                       return file.ends_with(".et") || file.ends_with(".groups.json");
                     }});
    check_distinct(files);
    for (const FileUse& file : files)
      if (file.writes && !file.owns && !file.path.empty()) check_writable(file.key, file.path);
  }
  count_samples(config);
  const Findings found = options.advises ? advice_on(config, options) : plan_of(config, options);
  const Outcome json = outcome_of([&] {
    if (!options.json.empty()) write_json(options.json, found.document);
  });
  if (!options.timeline.empty()) write_json(options.timeline, found.timeline);
  for (const Outcome& one : {json, found.traces})
    if (one.failed()) throw Error(one.code, one.message);
  print_output(found.text);
  return ExitCode::ok;
}

}  // namespace tessera
