// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/toml_value.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/strategy_rules.hpp>
#include <tessera/tensor/rules.hpp>

namespace tessera {
namespace {

constexpr const char* rules_key = "distributed.mesh_rules";
constexpr const char* only_model =
    "may name only the axis model, because over data and fsdp the strategy shards parameters, "
    "as flat units";

bool contains(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

void check_rule(const std::string& path, const std::string& name,
                const std::vector<std::string>& axes) {
  std::vector<std::string_view> known;
  static const MeshRules defaults = default_rules();
  for (const auto& [logical, unused] : defaults) known.push_back(logical);
  if (!contains(known, name)) reject(path, axes, "the name " + must_be_one_of(name, known));
  std::set<std::string> seen;
  for (const std::string& axis : axes) {
    if (!contains(known_axes, axis))
      reject(path, axes, to_toml(axis) + " " + must_be_one_of(axis, known_axes));
    if (!seen.insert(axis).second) reject(path, axes, "must not name an axis twice");
    if (name == "batch" && !axis_row(axis).splits("batch"))
      reject(path, axes,
             "may name only " + join(defaults.at("batch")) + ", the axes that split the batch");
    if (name != "batch" && axis != "model") reject(path, axes, only_model);
  }
}

/// Every kernel has a dimension named embed and another one, whose name its bias has too. If both
/// names used `model`, the first dimension would be split, and the bias with a dimension of the
/// kernel that is whole.
void check_one_name_on_model(const ModelSpec& model,
                             const std::map<std::string, std::vector<std::string>>& given) {
  MeshRules rules = default_rules();
  for (const auto& [name, axes] : given) rules[name] = axes;
  if (!contains(axes_of(rules, "embed"), "model")) return;
  std::set<std::string> others;
  for (const LayerSpec& layer : model.layers)
    for (const ParameterSpec& parameter : layer.parameters)
      others.insert(parameter.logical_axes.begin(), parameter.logical_axes.end());
  for (const std::string& name : others)
    if (!name.empty() && name != "embed" && contains(axes_of(rules, name), "model"))
      reject(entry_key(rules_key, "embed"), given.at("embed"),
             "needs {} = []: a kernel has one dimension of each name, and "
             "model can split only one of them",
             entry_key(rules_key, name));
}

/// The mesh axis that an option needs, "" for any axis of the batch, and the strategies that use
/// it.
struct Use {
  std::string_view axis;
  bool (*by)(const StrategyRow& row);
};
bool by_any(const StrategyRow&) { return true; }
/// In the order of Applies.
constexpr Use uses[] = {
    {"", [](const StrategyRow& row) { return row.shards.parameters; }},
    {"data", [](const StrategyRow& row) { return row.over_fsdp_only; }},
    {"", [](const StrategyRow& row) { return row.splits_batch && !row.shards.parameters; }},
    {"", [](const StrategyRow& row) { return row.splits_batch; }},
    {"model", by_any},
    {"context", by_any},
    {"pipeline", by_any},
};
const Use& use_of(Applies applies) { return uses[static_cast<std::size_t>(applies)]; }

/// "fsdp" or "hybrid"
std::string strategies_with(Applies applies) {
  std::string names;
  for (const StrategyRow& row : strategies)
    if (use_of(applies).by(row))
      names += fmt::format("{}\"{}\"", names.empty() ? "" : " or ", row.name);
  return names;
}

/// Says which value or strategy is allowed for an option that the strategy does not use.
std::string allowed_of(Applies applies, const nlohmann::json& standard, Strategy strategy) {
  if (applies == Applies::gathering || applies == Applies::replicating_shares)
    return fmt::format("needs distributed.strategy = {}: only {}, and \"{}\" does not",
                       strategies_with(applies),
                       applies == Applies::gathering ? "these gather parameters"
                                                     : "this replicates shares of parameters",
                       name_of(strategy));
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
  for (const std::size_t a : batch_axes(mesh))
    if (const Axis& axis = mesh.axes()[a]; !row.splits_batch && axis.size > 1)
      reject("distributed.strategy", row.name,
             "needs a mesh whose axis {} has size 1, not {}, because it splits only layers; to "
             "split the batch too, combine another strategy with a mesh axis model",
             axis.name, axis.size);
}

const std::vector<StrategyOption>& strategy_options() {
  static const std::vector<StrategyOption> options{
      {"distributed.fsdp_unit", Applies::gathering},
      {"distributed.prefetch", Applies::gathering},
      {"distributed.reshard_after_forward", Applies::gathering},
      {"distributed.keep_last_unit", Applies::gathering},
      {"distributed.shard_moments_over", Applies::replicating_shares},
      {"distributed.bucket_bytes", Applies::bucketing},
      {"distributed.overlap", Applies::splitting_batch},
      {"distributed.sequence_parallel", Applies::splitting_layers},
      {"distributed.model_overlap", Applies::splitting_layers},
      {"distributed.model_reduce_dtype", Applies::splitting_layers},
      {"distributed.context_attention", Applies::splitting_positions},
      {"distributed.zigzag", Applies::splitting_positions},
      {"distributed.schedule", Applies::staging},
      {"distributed.virtual_stages", Applies::staging},
      {"distributed.schedule_file", Applies::staging},
      {"distributed.stage_balance", Applies::staging},
      {"distributed.stage_layout", Applies::staging},
  };
  return options;
}

bool can_apply(Applies applies, Strategy strategy) { return use_of(applies).by(row_of(strategy)); }

bool applies_on(Applies applies, Strategy strategy, const MeshShape& mesh) {
  if (!can_apply(applies, strategy)) return false;
  const std::string axis(use_of(applies).axis);
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
    const std::string axis(use_of(option.applies).axis);
    if (!axis.empty() && axis != "model" && !mesh.find(axis))
      reject(option.key, value, "needs a mesh axis {}; the mesh is {}", axis, mesh.to_string());
  }
  std::vector<std::string> batch;
  for (const std::size_t a : batch_axes(mesh)) batch.push_back(mesh.axes()[a].name);
  if (const std::vector<std::string>& named = config.shard_moments_over;
      !named.empty() && (mesh.size_of("fsdp") == 1 || !std::ranges::is_permutation(named, batch)))
    reject(
        "distributed.shard_moments_over", named,
        "must be {}, all axes of the batch, on a mesh whose axis fsdp is larger than 1; the mesh "
        "is {}",
        to_toml(batch), mesh.to_string());
  for (const char* key : {"distributed.keep_last_unit", "distributed.reshard_after_forward"})
    if (setting_of(key).get(changed) == false && mesh.size_of("pipeline") > 1)
      reject(key, false,
             "must be true with a mesh axis pipeline larger than 1, because units then stay "
             "gathered until the end of the step");
}

void check_mesh_rules(const std::string& key,
                      const std::map<std::string, std::vector<std::string>>& rules) {
  for (const auto& [name, axes] : rules) check_rule(entry_key(key, name), name, axes);
}

void check_parameter_specs(const std::string& key,
                           const std::map<std::string, std::string>& specs) {
  for (const auto& [path, text] : specs) {
    try {
      PartitionSpec::parse(text);
    } catch (const ConfigError&) {
      reject(entry_key(key, path), text, "must be a PartitionSpec such as P(None, 'model')");
    }
  }
}

void check_sharding(const Config& config, const MeshShape& mesh, const ModelSpec& model) {
  const auto& rules = config.training.distributed.mesh_rules;
  if (mesh.find("expert") && config.model.transformer.experts == 0)
    reject("distributed.mesh_axis_names", mesh.axis_names(),
           "may name expert only with model.transformer.experts");
  check_one_name_on_model(model, rules);
  const auto batch = rules.find("batch");
  for (const std::size_t a : batch_axes(mesh))
    if (const std::string& axis = mesh.axes()[a].name;
        batch != rules.end() && !contains(batch->second, axis))
      reject(entry_key(rules_key, "batch"), batch->second,
             "must name {}, which splits the batch on the mesh {}", axis, mesh.to_string());
}

}  // namespace tessera
