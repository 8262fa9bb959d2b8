// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/mesh/placement.hpp>

namespace tessera {

/// JAX's spelling of where a tensor lives: for each dimension the mesh axes that shard it, none for
/// a dimension that is whole. Dimensions beyond the last entry are whole, too.
struct PartitionSpec {
  using Entry = std::vector<std::string>;
  std::vector<Entry> dims;

  PartitionSpec() = default;
  PartitionSpec(std::initializer_list<Entry> entries) : dims(entries) {}

  /// "P('data', None)", "PartitionSpec(('data', 'fsdp'),)", "P()"; quotes ' or ". ConfigError for
  /// the key "partition_spec" if the text is something else.
  static PartitionSpec parse(std::string_view text);
  /// "P(('data', 'fsdp'), None)"
  std::string to_string() const;

  friend bool operator==(const PartitionSpec&, const PartitionSpec&) = default;
};

/// ConfigError, which shows the spec, unless it names existing axes, each at most once, and is no
/// longer than `tensor_rank`. The axes of one dimension stand in the order of the mesh, outer split
/// first: no other nesting exists.
Placements to_placements(const PartitionSpec& spec, const MeshShape& mesh, std::size_t tensor_rank);

/// One entry per dimension. Error if a placement is Partial, which a spec cannot say.
PartitionSpec to_partition_spec(const Placements& placements, const MeshShape& mesh,
                                std::size_t tensor_rank);

}  // namespace tessera
