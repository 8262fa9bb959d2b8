// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/toml_value.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/strategy_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/data/data_row.hpp>
#include <tessera/plan/layout/strategy.hpp>

#include "study/study.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;
using Choice = std::map<std::string, Json>;  ///< one value of every factor of a grid
using NodesOf = std::function<Topology(Size ranks)>;

template <class T>
T value_of(const Choice& choice, const std::string& name, T otherwise) {
  const auto found = choice.find(name);
  if (found != choice.end()) tessera::assign("grid." + name, found->second, otherwise);
  return otherwise;
}

constexpr double most_cases = 10'000;

ConfigError too_many_cases(double number) {
  return ConfigError("grid", fmt::format("{:.0f} cases", number), "must be at most {:.0f} in all",
                     most_cases);
}

/// The first factors vary slowest, in the order of factor_names; configuration keys come last.
std::vector<Choice> product(const Grid& grid) {
  std::vector<std::string> order;
  for (const std::string_view name : factor_names)
    if (grid.count(std::string(name)) > 0) order.emplace_back(name);
  for (const auto& [name, values] : grid)
    if (name.find('.') != std::string::npos) order.push_back(name);
  double number = 1;
  for (const std::string& name : order) number *= static_cast<double>(grid.at(name).size());
  if (number > most_cases) throw too_many_cases(number);
  std::vector<Choice> choices{{}};
  for (const std::string& name : order) {
    std::vector<Choice> longer;
    for (const Choice& choice : choices) {
      for (const Json& value : grid.at(name)) {
        longer.push_back(choice);
        longer.back()[name] = value;
      }
    }
    choices = std::move(longer);
  }
  return choices;
}

void check_grid(const Grid& grid) {
  const auto has = [&](const char* name) { return grid.count(name) > 0; };
  const auto exclusive = [&](const char* name, const char* other) {
    if (has(name) && has(other))
      reject(std::string("grid.") + name, grid.at(name),
             std::string("cannot be combined with ") + other);
  };
  exclusive("meshes_over", "mesh");
  exclusive("batch_per_rank", "global_batch");
  if (has("meshes_over") && !has("ranks"))
    reject("grid.meshes_over", grid.at("meshes_over"), "needs ranks");
  if (!has("mesh") && !has("ranks")) throw Error(ExitCode::usage, "a [[grid]] needs ranks or mesh");
}

std::string strategy_of(const Choice& choice, const Study& study) {
  return value_of(choice, "strategy",
                  std::string(name_of(study.base.training.distributed.strategy)));
}

/// A mesh without -1, "nodes" or "per_node" needs no number of ranks.
MeshShape parse_mesh(const std::string& text, std::optional<Size> ranks, const NodesOf& nodes_of) {
  const std::vector<Axis> axes = parse_axes(text);
  if (ranks) return MeshShape::fit(axes, nodes_of(*ranks));
  for (const Axis& axis : axes)
    if (axis.size < 0)
      throw ConfigError(
          "grid.mesh", text,
          "has a size that depends on the number of ranks, so the grid must set ranks");
  return MeshShape(axes);
}

std::vector<MeshShape> meshes_of(const Choice& choice, const std::string& strategy,
                                 const NodesOf& nodes_of) {
  std::optional<Size> ranks;
  if (choice.count("ranks") > 0) {
    ranks = value_of<Size>(choice, "ranks", 1);
    if (*ranks < 1 || *ranks > most_ranks)
      throw ConfigError("grid.ranks", std::to_string(*ranks), "must be from 1 to {}",
                        with_thousands(most_ranks));
  }
  if (choice.count("mesh") > 0)
    return {parse_mesh(value_of<std::string>(choice, "mesh", ""), ranks, nodes_of)};
  if (choice.count("meshes_over") == 0) return {usual_mesh(strategy, nodes_of(*ranks))};
  const auto axes = value_of<std::vector<std::string>>(choice, "meshes_over", {});
  if (axes.empty()) throw ConfigError("grid.meshes_over", "[]", "must have at least one axis");
  if (const double meshes = most_factorisations(*ranks, axes.size()); meshes > most_cases)
    throw too_many_cases(meshes);
  return factorisations(*ranks, axes);
}

Case make_case(const Study& study, const Choice& choice, const std::string& strategy,
               const MeshShape& mesh) {
  Case point;
  point.mesh = mesh;
  point.config = study.base;
  TrainingConfig& training = point.config.training;
  for (const auto& [name, value] : choice) {
    const std::string key = name_in_cases(name);
    if (key.find('.') == std::string::npos || !applies(key, strategy, mesh)) continue;
    set(point.config, key, value);
    point.factors[key] = value;
  }
  set(point.config, "distributed.strategy", strategy);
  set_mesh(training.distributed, mesh);
  training.distributed.num_nodes.reset();
  training.distributed.num_processes_per_node.reset();
  training.microbatches = value_of(choice, "microbatches", training.microbatches);
  training.batch_size = value_of(choice, "global_batch", training.batch_size);
  if (choice.count("batch_per_rank") > 0) {
    const Size per_rank = value_of<Size>(choice, "batch_per_rank", 1);
    if (per_rank > std::numeric_limits<Size>::max() / mesh.num_ranks())
      throw ConfigError("grid.batch_per_rank", std::to_string(per_rank),
                        "is too large for {} ranks", mesh.num_ranks());
    training.batch_size = per_rank * mesh.num_ranks();
    point.factors["batch_per_rank"] = per_rank;
  }
  if (point.config.data.samples == every_sample)
    throw ConfigError("data.samples", "\"all\"", "must be a number in a study");
  // With at least two batches, the loss of the second step shows the effect of the first.
  if (!study.gives_samples && choice.count("data.samples") == 0)
    point.config.data.samples =
        std::max(point.config.data.samples,
                 2 * std::min(training.batch_size, std::numeric_limits<Size>::max() / 2));
  point.factors["strategy"] = strategy;
  point.factors["mesh"] = mesh.to_string();
  point.factors["ranks"] = mesh.num_ranks();
  point.factors["global_batch"] = training.batch_size;
  point.factors["microbatches"] = training.microbatches;
  name_case(point);
  return point;
}

bool matches(const Exclusion& exclusion, const Json& factors) {
  return std::all_of(exclusion.where.begin(), exclusion.where.end(), [&](const auto& condition) {
    const auto found = factors.find(name_in_cases(condition.first));
    const auto& values = condition.second;
    return found != factors.end() &&
           std::find(values.begin(), values.end(), *found) != values.end();
  });
}

std::optional<std::string> find_skip_reason(const Study& study, const Case& point) {
  for (const Exclusion& exclusion : study.exclusions)
    if (matches(exclusion, point.factors)) return exclusion.reason;
  if (point.config.training.check_replicas_every > 0)
    return "training.check_replicas_every is not supported in studies, which check losses instead";
  if (point.config.training.patience > 0)
    return "training.patience is not supported in studies, which make a given number of steps";
  if (!point.config.checkpoint.init_from.empty())
    return "checkpoint.init_from is not supported in studies, which draw initial parameters";
  for (const char* key : {"checkpoint.every_steps", "checkpoint.every_minutes", "checkpoint.at_end",
                          "checkpoint.keep", "checkpoint.keep_best", "checkpoint.on_failure"})
    if (!setting_of(key).is_default(point.config))
      return std::string(key) +
             " is not supported in studies, which write measure.checkpoints checkpoints and keep "
             "none";
  try {
    plan_of(point.config, point.ranks());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return std::nullopt;
}

/// Returns the nodes of a case: those of the launch, or as the study gives them. If a case is
/// larger than the launch and the study gives no nodes, they are like the launch's, or one node if
/// these do not evenly divide the ranks.
NodesOf nodes_of_cases(const Study& study, const std::optional<Topology>& launch) {
  const Size per_node = study.base.training.distributed.num_processes_per_node.value_or(0);
  const Topology planned = per_node > 0 ? Topology::blocks(per_node, per_node) : Topology(1);
  return [launch, planned](Size ranks) {
    if (!launch) return planned.of(ranks);
    if (ranks <= launch->ranks()) return launch->of(ranks);
    if (planned.is_known()) return planned.of(ranks);
    const Topology alike = launch->of(ranks);
    return alike.per_node() ? alike : Topology::blocks(ranks, ranks);
  };
}

}  // namespace

Case case_of(const Study& study, const nlohmann::json& factors) {
  return make_case(study, factors.get<Choice>(), factors.at("strategy"),
                   MeshShape(parse_axes(factors.at("mesh").get<std::string>())));
}

void check_factors(const StoredDocument& factors) {
  constexpr Size most_samples = 1'000'000'000'000'000;
  factors["strategy"].text();
  factors["mesh"].text();
  factors["ranks"].integer(1, most_ranks);
  factors["global_batch"].integer(1, most_samples);
  factors["microbatches"].integer(1, most_samples);
  if (const StoredDocument threads = factors["distributed.threads"]; !threads.is_missing())
    threads.number();
}

bool applies(const std::string& key, const std::string& strategy, const MeshShape& mesh) {
  for (const StrategyOption& option : strategy_options())
    if (option.key == key) {
      const auto known = value_named<Strategy>(strategy);
      return !known || applies_on(option.applies, *known, mesh);
    }
  return true;
}

Plan plan_of(const Config& config, Size ranks, const DeviceTraits& traits) {
  const Config resolved = resolve(config, ranks);
  return make_plan(plan_input(resolved, resolve_mesh(resolved, ranks), traits));
}

bool depends_on_nodes(const Study& study) {
  constexpr Size most_per_node = 1024;
  const auto meshes = [&](const Choice& choice, Size per_node) -> std::string {
    std::string text;
    try {
      for (const MeshShape& mesh : meshes_of(choice, strategy_of(choice, study), [&](Size ranks) {
             return Topology::blocks(ranks, per_node);
           }))
        text += mesh.to_string() + ";";
    } catch (const ConfigError& error) {
      text = error.what();
    }
    return text;
  };
  for (const Grid& grid : study.grids)
    for (const Choice& choice : product(grid))
      for (Size per_node = 2; per_node <= most_per_node; per_node *= 2)
        if (meshes(choice, per_node) != meshes(choice, 1)) return true;
  return false;
}

std::vector<Case> make_cases(const Study& study, const std::optional<Topology>& launch) {
  const NodesOf nodes_of = nodes_of_cases(study, launch);
  std::vector<Case> cases;
  std::set<std::string> ids;
  for (const Grid& grid : study.grids) {
    check_grid(grid);
    for (const Choice& choice : product(grid)) {
      const std::string strategy = strategy_of(choice, study);
      for (const MeshShape& mesh : meshes_of(choice, strategy, nodes_of)) {
        Case point = make_case(study, choice, strategy, mesh);
        point.topology = nodes_of(mesh.num_ranks());
        if (!ids.insert(point.id).second) continue;
        if (static_cast<double>(ids.size()) > most_cases)
          throw too_many_cases(static_cast<double>(ids.size()));
        point.skip_reason = find_skip_reason(study, point);
        cases.push_back(std::move(point));
      }
    }
  }
  return cases;
}

}  // namespace tessera::bench
