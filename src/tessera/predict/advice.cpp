// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/strategy_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/plan/layout/strategy.hpp>
#include <tessera/predict/advice.hpp>
#include <tessera/predict/rank_kinds.hpp>

namespace tessera {
namespace {

/// Returns the axes of the meshes that are tried for a strategy, in the order of the mesh.
std::vector<std::string> axes_for(const StrategyRow& strategy,
                                  const std::vector<std::string>& own) {
  std::vector<std::string> axes{"pipeline"};
  for (const std::string_view axis : strategy.usual_axes)
    if (!axis.empty()) axes.emplace_back(axis);
  axes.insert(axes.end(), own.begin(), own.end());
  axes.emplace_back("model");
  return axes;
}

std::vector<MeshShape> meshes_for(const StrategyRow& strategy, Size ranks,
                                  const std::vector<std::string>& own) {
  if (ranks == 1) return {usual_mesh(std::string(strategy.name), ranks)};
  return factorisations(ranks, axes_for(strategy, own));
}

/// Returns true if every usual axis of a sharding strategy has several ranks. Otherwise its step
/// equals the step of another strategy, which is tried as well.
bool is_used(const StrategyRow& strategy, const MeshShape& mesh) {
  if (strategy.shards == Sharding{}) return true;
  return std::all_of(strategy.usual_axes.begin(), strategy.usual_axes.end(),
                     [&](auto axis) { return axis.empty() || mesh.size_of(axis) > 1; });
}

class Search {
 public:
  Search(const Config& config, Size ranks, const Machine& machine)
      : config_(config), ranks_(ranks), machine_(machine) {}

  Advice run() {
    find_ways();
    if (ranks_ < 1 || ranks_ > machine_.ranks())
      throw ConfigError("--ranks", std::to_string(ranks_),
                        "must be from 1 to {}, the number of ranks of machine {}",
                        with_thousands(machine_.ranks()), machine_.name);
    for (const StrategyRow& strategy : strategies) {
      // The step of `tensor` equals that of `data` on a mesh with the axis model only.
      if (!strategy.splits_batch) continue;
      for (const MeshShape& mesh : meshes_for(strategy, ranks_, own_axes()))
        if (is_used(strategy, mesh)) try_ways(strategy, mesh);
    }
    if (advice_.fits.empty() && advice_.too_large.empty())
      throw ConfigError("--ranks", std::to_string(ranks_),
                        "no mesh of this many ranks can run this configuration: " + problem_);
    const auto sort = [](std::vector<Candidate>& list, auto number) {
      std::stable_sort(list.begin(), list.end(), [&](const Candidate& a, const Candidate& b) {
        return number(a) < number(b);
      });
    };
    sort(advice_.fits, [](const Candidate& one) { return one.step.step_seconds; });
    sort(advice_.too_large, [](const Candidate& one) { return one.memory_bytes; });
    return std::move(advice_);
  }

 private:
  /// Finds the ways of attention to try on meshes with an axis `context`: none if samples have one
  /// position, the default if the model has no attention. Candidates report an invalid model.
  void find_ways() {
    try {
      const ModelSpec model = make_model(config_);
      if (model.input_positions == 1) return;
      ways_ = {ContextAttention::gather};
      if (attends(model))
        ways_ = {ContextAttention::gather, ContextAttention::ring, ContextAttention::all_to_all};
    } catch (const ConfigError&) {
    }
  }

  /// Returns the axes that the model adds to those of a strategy.
  std::vector<std::string> own_axes() const {
    std::vector<std::string> axes;
    if (config_.model.transformer.experts > 0) axes.emplace_back("expert");
    if (!ways_.empty()) axes.emplace_back("context");
    return axes;
  }

  void try_ways(const StrategyRow& strategy, const MeshShape& mesh) {
    if (mesh.size_of("context") == 1) return try_mesh(strategy, mesh);
    for (const ContextAttention way : ways_) {
      config_.training.distributed.context_attention = way;
      try_mesh(strategy, mesh);
    }
  }

  /// Tries numbers of microbatches on a mesh, first without and then with recomputation. Without a
  /// pipeline, more microbatches and recomputation only cost time, so the first candidate that fits
  /// is the fastest. With a pipeline, more microbatches shorten the bubble, so all numbers are
  /// tried.
  void try_mesh(const StrategyRow& strategy, const MeshShape& mesh) {
    const Size parts = mesh.group_size(batch_axes(mesh));
    std::optional<Candidate> smallest;
    bool fits = false;
    for (const Size units : {Size{0}, Size{1}}) {
      for (Size number = 1; number * parts <= config_.training.batch_size; number *= 2) {
        std::optional<Candidate> made = candidate(strategy, mesh, number, units);
        if (!made) continue;
        if (made->memory_bytes <= machine_.memory_bytes) {
          advice_.fits.push_back(std::move(*made));
          if (mesh.size_of("pipeline") == 1) return;
          fits = true;
        } else if (!smallest || made->memory_bytes < smallest->memory_bytes) {
          smallest = std::move(made);
        }
      }
      if (fits) return;
    }
    if (smallest) advice_.too_large.push_back(std::move(*smallest));
  }

  /// Returns a candidate that recomputes segments of `units` units; none if the configuration
  /// cannot run like this. `problem_` then tells why.
  std::optional<Candidate> candidate(const StrategyRow& strategy, const MeshShape& mesh,
                                     Size microbatches, Size units) {
    Candidate made{config_, mesh};
    TrainingConfig& training = made.config.training;
    set_mesh(training.distributed, mesh);
    training.distributed.num_nodes.reset();
    training.distributed.num_processes_per_node.reset();
    training.distributed.strategy = *value_named<Strategy>(strategy.name);
    for (const StrategyOption& option : strategy_options()) {
      const Setting& setting = setting_of(option.key);
      if (!applies_on(option.applies, training.distributed.strategy, mesh))
        setting.set(made.config, setting.get(Config{}));
    }
    training.microbatches = microbatches;
    training.activation_checkpointing.units = units;
    try {
      validate(made.config, ranks_);
      const Plan plan = make_plan(plan_input(made.config, mesh, machine_.target()));
      const RankKinds kinds = rank_kinds(plan);
      for (const Size rank : kinds.first)
        made.memory_bytes = std::max(made.memory_bytes, plan.memory(rank).total());
      made.sent_bytes = step_bytes(plan);
      if (made.memory_bytes <= machine_.memory_bytes)
        made.step = simulate(plan, cost_on(machine_, plan), kinds);
      return made;
    } catch (const ConfigError& error) {
      problem_ = error.what();
      return std::nullopt;
    }
  }

  Config config_;
  Size ranks_;
  const Machine& machine_;
  std::vector<ContextAttention> ways_;
  Advice advice_;
  std::string problem_;
};

/// Returns the seconds of the parts of a step, by name.
std::map<std::string, double> parts_of_step(const SimulatedStep& step) {
  std::map<std::string, double> parts{{"products", step.products.work},
                                      {"other kernels", step.kernels.work},
                                      {"the optimizer", step.update.work},
                                      {"launches of kernels", step.launches()},
                                      {"waiting", step.waiting()}};
  for (const SimulatedStep::Call& call : step.calls)
    parts[fmt::format("{} on {}", name_of(call.operation), call.axis)] += call.seconds;
  return parts;
}

}  // namespace

Advice advise(const Config& config, Size ranks, const Machine& machine) {
  return Search(config, ranks, machine).run();
}

std::string why_slower(const SimulatedStep& slower, const SimulatedStep& faster) {
  std::map<std::string, double> more = parts_of_step(slower);
  for (const auto& [name, seconds] : parts_of_step(faster)) more[name] -= seconds;
  const auto largest = std::max_element(
      more.begin(), more.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (largest->second <= 0) return "";
  return fmt::format("{} more in {}", human_seconds(largest->second), largest->first);
}

}  // namespace tessera
