// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tessera/mesh/partition_spec.hpp>

namespace tessera {

/// The rule table: for the logical name of a tensor's dimension, the mesh axes that shard it.
/// Tensor parallelism is the rule mlp -> model, data parallelism batch -> (data, fsdp).
class MeshRules {
 public:
  struct Rule {
    std::string logical;
    std::vector<std::string> axes;  ///< none: the dimension stays whole
    friend bool operator==(const Rule&, const Rule&) = default;
  };

  MeshRules() = default;
  /// ConfigError for the key "mesh_rules" if a logical name has two rules.
  explicit MeshRules(std::vector<Rule> rules);

  /// Replaces the rule of `logical`, or adds one.
  MeshRules& set(std::string logical, std::vector<std::string> axes);

  const std::vector<Rule>& rules() const { return rules_; }
  /// ConfigError with the nearest name if there is no rule: a misspelt name must not replicate.
  const std::vector<std::string>& axes_of(std::string_view logical) const;

 private:
  std::vector<Rule> rules_;
};

/// batch -> (data, fsdp), embed -> none, everything else -> model: what every strategy of ours
/// uses. heads, mlp, modes and vocab are dimensions of layers that `model` splits. ZeRO and FSDP
/// shard flat units and not dimensions, so no parameter's name maps to `fsdp`.
MeshRules default_rules();
/// batch -> (data, fsdp), everything else whole.
MeshRules data_parallel_rules();

/// The spec of a tensor from the logical names of its dimensions; an empty name is a whole
/// dimension. A mesh axis serves one dimension: the first dimension that asks for it gets it, and
/// later ones stay whole along it, as a spec may name an axis only once. Axes that the mesh does
/// not have are left out, and the axes of one dimension take the order of the mesh.
PartitionSpec partition_spec_for_names(const std::vector<std::string>& names,
                                       const MeshRules& rules, const MeshShape& mesh);

}  // namespace tessera
