// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/toml_value.hpp>
#include <tessera/config/sharding_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/plan/layout/strategy.hpp>
#include <tessera/tensor/rules.hpp>

namespace tessera {
namespace {

constexpr const char* rules_key = "distributed.mesh_rules";
constexpr const char* only_model =
    "may name only the axis model, because over data and fsdp the strategy shards parameters, "
    "as flat units";

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void check_logical_name(const std::string& key, const std::string& name,
                        const std::vector<std::string>& axes) {
  std::vector<std::string_view> known;
  static const MeshRules defaults = default_rules();
  for (const auto& [logical, unused] : defaults) known.push_back(logical);
  if (std::find(known.begin(), known.end(), name) == known.end())
    reject(entry_key(key, name), axes, "the name " + must_be_one_of(name, known));
}

void check_rule_axes(const std::string& key, const std::string& name,
                     const std::vector<std::string>& axes) {
  const std::string path = entry_key(key, name);
  std::set<std::string> seen;
  for (const std::string& axis : axes) {
    if (std::find(known_axes.begin(), known_axes.end(), axis) == known_axes.end())
      reject(path, axes, to_toml(axis) + " " + must_be_one_of(axis, known_axes));
    if (!seen.insert(axis).second) reject(path, axes, "must not name an axis twice");
    if (name == "batch" && axis != "data" && axis != "fsdp" && axis != "expert")
      reject(path, axes, "may name only data, fsdp and expert, the axes that split the batch");
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

void check_rule_of_batch(const std::vector<std::string>& axes, const MeshShape& mesh) {
  for (const std::string& axis : batch_axes(mesh))
    if (!contains(axes, axis))
      reject(entry_key(rules_key, "batch"), axes,
             "must name {}, which splits the batch on the mesh {}", axis, mesh.to_string());
}

}  // namespace

void check_mesh_rules(const std::string& key,
                      const std::map<std::string, std::vector<std::string>>& rules) {
  for (const auto& [name, axes] : rules) {
    check_logical_name(key, name, axes);
    check_rule_axes(key, name, axes);
  }
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

void check_sharding(const Config& config, const MeshShape& mesh) {
  const DistributedConfig& distributed = config.training.distributed;
  if (mesh.find("expert") && config.model.transformer.experts == 0)
    reject("distributed.mesh_axis_names", mesh.axis_names(),
           "may name expert only with model.transformer.experts");
  check_one_name_on_model(make_model(config.model), distributed.mesh_rules);
  if (const auto batch = distributed.mesh_rules.find("batch");
      batch != distributed.mesh_rules.end())
    check_rule_of_batch(batch->second, mesh);
}

}  // namespace tessera
