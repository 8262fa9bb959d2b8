// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/toml_value.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/strategy_rules.hpp>

namespace tessera {
namespace {

/// "fsdp" or "hybrid"
std::string strategies_that_gather() {
  std::string names;
  for (const StrategyRow& row : strategies)
    if (row.shards.parameters)
      names += fmt::format("{}\"{}\"", names.empty() ? "" : " or ", row.name);
  return names;
}

/// Returns the mesh axis that an option needs; "" if it needs any axis of the batch.
std::string axis_of(Applies applies) {
  if (applies == Applies::splitting_layers) return "model";
  if (applies == Applies::splitting_positions) return "context";
  return applies == Applies::staging ? "pipeline" : "";
}

/// Says which value or strategy is allowed for an option that the strategy does not use.
std::string allowed_of(Applies applies, const nlohmann::json& standard, Strategy strategy) {
  if (applies == Applies::gathering)
    return fmt::format(
        "needs distributed.strategy = {}: only these gather parameters, and \"{}\" does not",
        strategies_that_gather(), name_of(strategy));
  return fmt::format(
      "must be {}, the default, with distributed.strategy = \"{}\", which {}", to_toml(standard),
      name_of(strategy),
      row_of(strategy).splits_batch ? "reduces unit by unit" : "does not split the batch");
}

}  // namespace

void check_mesh_of_strategy(const DistributedConfig& config, const MeshShape& mesh) {
  const StrategyRow& row = row_of(config.strategy);
  if (row.over_fsdp_only && !mesh.find("fsdp"))
    reject("distributed.strategy", row.name,
           "needs a mesh with an axis fsdp to shard over, such as data=2,fsdp=4, where "
           "data replicates; the mesh is {}",
           mesh.to_string());
  for (const std::string& axis : batch_axes(mesh))
    if (!row.splits_batch && mesh.size_of(axis) > 1)
      reject("distributed.strategy", row.name,
             "needs a mesh whose axis {} has size 1, not {}, because it splits only layers; to "
             "split the batch too, combine another strategy with a mesh axis model",
             axis, mesh.size_of(axis));
}

const std::vector<StrategyOption>& strategy_options() {
  static const std::vector<StrategyOption> options{
      {"distributed.prefetch", Applies::gathering},
      {"distributed.reshard_after_forward", Applies::gathering},
      {"distributed.keep_last_unit", Applies::gathering},
      {"distributed.bucket_bytes", Applies::bucketing},
      {"distributed.overlap", Applies::splitting_batch},
      {"distributed.sequence_parallel", Applies::splitting_layers},
      {"distributed.context_attention", Applies::splitting_positions},
      {"distributed.zigzag", Applies::splitting_positions},
      {"distributed.schedule", Applies::staging},
      {"distributed.virtual_stages", Applies::staging},
      {"distributed.stage_balance", Applies::staging},
  };
  return options;
}

bool can_apply(Applies applies, Strategy strategy) {
  const StrategyRow& row = row_of(strategy);
  switch (applies) {
    case Applies::gathering:
      return row.shards.parameters;
    case Applies::bucketing:
      return row.splits_batch && !row.shards.parameters;
    case Applies::splitting_batch:
      return row.splits_batch;
    case Applies::splitting_layers:
    case Applies::splitting_positions:
    case Applies::staging:
      return true;
  }
  return true;
}

bool applies_on(Applies applies, Strategy strategy, const MeshShape& mesh) {
  if (!can_apply(applies, strategy)) return false;
  const std::string axis = axis_of(applies);
  return axis.empty() ? mesh.group_size(replicating_axes(mesh)) > 1 : mesh.size_of(axis) > 1;
}

void check_options_of_strategy(const DistributedConfig& config, const MeshShape& mesh) {
  Config changed;
  changed.training.distributed = config;
  for (const StrategyOption& option : strategy_options()) {
    const Setting& setting = setting_of(option.key);
    const nlohmann::json value = setting.get(changed);
    if (value == setting.standard) continue;
    if (!can_apply(option.applies, config.strategy))
      reject(option.key, value, allowed_of(option.applies, setting.standard, config.strategy));
    const std::string axis = axis_of(option.applies);
    if (!axis.empty() && axis != "model" && !mesh.find(axis))
      reject(option.key, value, "needs a mesh axis {}; the mesh is {}", axis, mesh.to_string());
  }
  if (!config.keep_last_unit && !config.reshard_after_forward)
    reject("distributed.keep_last_unit", false,
           "must be true with distributed.reshard_after_forward = false, which keeps all units");
  for (const auto& [key, value] :
       {std::pair{"keep_last_unit", config.keep_last_unit},
        std::pair{"reshard_after_forward", config.reshard_after_forward}})
    if (!value && mesh.size_of("pipeline") > 1)
      reject(
          fmt::format("distributed.{}", key), false,
          "must be true with a mesh axis pipeline larger than 1, because units then stay gathered "
          "until the end of the step");
}

}  // namespace tessera
