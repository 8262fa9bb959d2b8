// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/tensor/placement.hpp>

namespace tessera {

/// Placements in JAX's spelling: for each dimension the mesh axes that shard it; a whole dimension
/// has none. Dimensions after the last entry are whole.
struct PartitionSpec {
  using Entry = std::vector<std::string>;
  std::vector<Entry> dims;

  PartitionSpec() = default;
  PartitionSpec(std::initializer_list<Entry> entries) : dims(entries) {}

  /// Reads "P('data', None)", "PartitionSpec(('data', 'fsdp'),)" or "P()", with quotes ' or ".
  /// Throws ConfigError for the key "partition_spec" for other text.
  static PartitionSpec parse(std::string_view text);
  /// "P(('data', 'fsdp'), None)"
  std::string to_string() const;

  friend bool operator==(const PartitionSpec&, const PartitionSpec&) = default;
};

/// Returns the placements of a spec. Throws ConfigError unless the spec names existing axes, each
/// at most once, and has at most `tensor_rank` entries. The axes of one dimension must have the
/// order of the mesh, in which splits are nested, outermost first.
Placements to_placements(const PartitionSpec& spec, const MeshShape& mesh, std::size_t tensor_rank);

/// Returns a spec with one entry per dimension. Throws Error (usage) for a Partial placement, which
/// a spec cannot express.
PartitionSpec to_partition_spec(const Placements& placements, const MeshShape& mesh,
                                std::size_t tensor_rank);

}  // namespace tessera
