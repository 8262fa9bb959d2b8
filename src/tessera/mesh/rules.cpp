// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/mesh/rules.hpp>

namespace tessera {
namespace {

using Entry = PartitionSpec::Entry;

/// `allowed` picks and orders the axes of one rule.
template <class Allowed>
PartitionSpec spec_for(const std::vector<std::string>& names, const MeshRules& rules,
                       Allowed allowed) {
  PartitionSpec spec;
  std::vector<std::string> used;
  for (const std::string& name : names) {
    Entry entry = name.empty() ? Entry{} : allowed(rules.axes_of(name));
    std::erase_if(entry, [&](const std::string& axis) {
      return std::find(used.begin(), used.end(), axis) != used.end();
    });
    used.insert(used.end(), entry.begin(), entry.end());
    spec.dims.push_back(std::move(entry));
  }
  return spec;
}

}  // namespace

MeshRules::MeshRules(std::vector<Rule> rules) {
  for (Rule& rule : rules) {
    for (const Rule& earlier : rules_) {
      if (earlier.logical == rule.logical) {
        throw ConfigError("mesh_rules", rule.logical, "must have one rule, not two");
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
  throw ConfigError("logical axis", logical,
                    fmt::format("must be one of {}{}", join(known),
                                nearest ? fmt::format(" (nearest: {})", *nearest) : ""));
}

MeshRules default_rules() {
  return MeshRules({{"batch", {"data", "fsdp"}}, {"embed", {}}, {"mlp", {"model"}}});
}

MeshRules data_parallel_rules() { return default_rules().set("mlp", {}); }

PartitionSpec partition_spec_for_names(const std::vector<std::string>& names,
                                       const MeshRules& rules) {
  return spec_for(names, rules, [](const Entry& axes) { return axes; });
}

PartitionSpec partition_spec_for_names(const std::vector<std::string>& names,
                                       const MeshRules& rules, const MeshShape& mesh) {
  return spec_for(names, rules, [&](const Entry& axes) {
    Entry present;
    for (const Axis& axis : mesh.axes()) {
      if (std::find(axes.begin(), axes.end(), axis.name) != axes.end()) {
        present.push_back(axis.name);
      }
    }
    return present;
  });
}

}  // namespace tessera
