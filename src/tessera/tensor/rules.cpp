// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/tensor/mesh_axes.hpp>
#include <tessera/tensor/rules.hpp>

namespace tessera {

MeshRules default_rules() {
  std::vector<std::string> of_batch;
  for (const AxisRow& axis : mesh_axes)
    if (axis.splits("batch")) of_batch.emplace_back(axis.name);
  return {{"batch", of_batch}, {"embed", {}},        {"experts", {"model"}}, {"heads", {"model"}},
          {"mlp", {"model"}},  {"modes", {"model"}}, {"vocab", {"model"}}};
}

const std::vector<std::string>& axes_of(const MeshRules& rules, const std::string& logical) {
  if (const auto rule = rules.find(logical); rule != rules.end()) return rule->second;
  std::vector<std::string> known;
  for (const auto& [name, axes] : rules) known.push_back(name);
  const auto nearest = suggest_nearest(logical, known);
  throw ConfigError("logical axis", logical, "must be one of {}{}", join(known),
                    nearest ? fmt::format(" (nearest: {})", *nearest) : "");
}

PartitionSpec partition_spec_for_names(const std::vector<std::string>& names,
                                       const MeshRules& rules, const MeshShape& mesh) {
  PartitionSpec spec;
  std::set<std::string> used;
  for (const std::string& name : names) {
    PartitionSpec::Entry entry;
    const std::vector<std::string> asked = name.empty() ? entry : axes_of(rules, name);
    for (const std::string& axis : mesh.axis_names()) {
      const bool asks = std::find(asked.begin(), asked.end(), axis) != asked.end();
      if (asks && used.insert(axis).second) entry.push_back(axis);
    }
    spec.dims.push_back(std::move(entry));
  }
  return spec;
}

}  // namespace tessera
