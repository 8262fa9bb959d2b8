// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/tensor/partition_spec.hpp>

namespace tessera {

/// The sharding rules: from logical names of tensor dimensions to the mesh axes that shard them. A
/// dimension without axes stays whole. Tensor parallelism is the rule mlp -> model; data
/// parallelism is batch -> (data, fsdp).
using MeshRules = std::map<std::string, std::vector<std::string>>;

/// Returns the rules of all strategies: batch -> (data, fsdp, expert), embed -> none, and experts,
/// heads, mlp, modes and vocab -> model. No parameter dimension maps to `fsdp`, because ZeRO and
/// FSDP shard flat units.
MeshRules default_rules();

/// Returns the axes of a logical name. Throws ConfigError with the nearest name if there is no
/// rule, so that a misspelt name does not replicate a tensor.
const std::vector<std::string>& axes_of(const MeshRules& rules, const std::string& logical);

/// Returns the spec of a tensor from the logical names of its dimensions; a dimension with an empty
/// name stays whole. If the rules of several dimensions name one mesh axis, the first dimension
/// gets it. Axes that the mesh lacks are left out. The axes of one dimension have the order of the
/// mesh.
PartitionSpec partition_spec_for_names(const std::vector<std::string>& names,
                                       const MeshRules& rules, const MeshShape& mesh);

}  // namespace tessera
