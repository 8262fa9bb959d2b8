// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tessera/mesh/partition_spec.hpp>

namespace tessera {

/// The sharding rules: a table from logical names of tensor dimensions to the mesh axes that shard
/// them. Tensor parallelism is the rule mlp -> model; data parallelism is batch -> (data, fsdp).
class MeshRules {
 public:
  struct Rule {
    std::string logical;
    std::vector<std::string> axes;  ///< empty: the dimension stays whole
    friend bool operator==(const Rule&, const Rule&) = default;
  };

  MeshRules() = default;
  /// Throws ConfigError for the key "mesh_rules" if a logical name has two rules.
  explicit MeshRules(std::vector<Rule> rules);

  /// Replaces the rule of `logical`, or adds one.
  MeshRules& set(std::string logical, std::vector<std::string> axes);

  const std::vector<Rule>& rules() const { return rules_; }
  /// Returns the axes of a logical name. Throws ConfigError with the nearest name if there is no
  /// rule, so that a misspelt name does not replicate a tensor.
  const std::vector<std::string>& axes_of(std::string_view logical) const;

 private:
  std::vector<Rule> rules_;
};

/// Returns the rules of all strategies: batch -> (data, fsdp), embed -> none, and heads, mlp, modes
/// and vocab -> model. No parameter dimension maps to `fsdp`, because ZeRO and FSDP shard flat
/// units.
MeshRules default_rules();

/// Returns the spec of a tensor from the logical names of its dimensions; a dimension with an empty
/// name stays whole. If the rules of several dimensions name one mesh axis, the first dimension
/// gets it. Axes that the mesh lacks are left out. The axes of one dimension have the order of the
/// mesh.
PartitionSpec partition_spec_for_names(const std::vector<std::string>& names,
                                       const MeshRules& rules, const MeshShape& mesh);

}  // namespace tessera
