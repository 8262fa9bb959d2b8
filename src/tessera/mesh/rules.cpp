// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/mesh/rules.hpp>

namespace tessera {

MeshRules::MeshRules(std::vector<Rule> rules) {
  for (Rule& rule : rules) {
    for (const Rule& earlier : rules_) {
      if (earlier.logical == rule.logical) {
        throw ConfigError("mesh_rules", rule.logical, "has two rules, but must have only one");
      }
    }
    rules_.push_back(std::move(rule));
  }
}

MeshRules& MeshRules::set(std::string logical, std::vector<std::string> axes) {
  for (Rule& rule : rules_) {
    if (rule.logical == logical) {
      rule.axes = std::move(axes);
      return *this;
    }
  }
  rules_.push_back({std::move(logical), std::move(axes)});
  return *this;
}

const std::vector<std::string>& MeshRules::axes_of(std::string_view logical) const {
  std::vector<std::string> known;
  for (const Rule& rule : rules_) {
    if (rule.logical == logical) return rule.axes;
    known.push_back(rule.logical);
  }
  const auto nearest = suggest_nearest(logical, known);
  throw ConfigError("logical axis", logical, "must be one of {}{}", join(known),
                    nearest ? fmt::format(" (nearest: {})", *nearest) : "");
}

MeshRules default_rules() {
  return MeshRules({{"batch", {"data", "fsdp"}},
                    {"embed", {}},
                    {"heads", {"model"}},
                    {"mlp", {"model"}},
                    {"modes", {"model"}},
                    {"vocab", {"model"}}});
}

PartitionSpec partition_spec_for_names(const std::vector<std::string>& names,
                                       const MeshRules& rules, const MeshShape& mesh) {
  PartitionSpec spec;
  std::set<std::string> used;
  for (const std::string& name : names) {
    PartitionSpec::Entry entry;
    const std::vector<std::string> asked = name.empty() ? entry : rules.axes_of(name);
    for (const std::string& axis : mesh.axis_names()) {
      const bool asks = std::find(asked.begin(), asked.end(), axis) != asked.end();
      if (asks && used.insert(axis).second) entry.push_back(axis);
    }
    spec.dims.push_back(std::move(entry));
  }
  return spec;
}

}  // namespace tessera
