// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/mesh/mesh_shape.hpp>

namespace tessera {

/// What one tensor is along one mesh axis.
class Placement {
 public:
  enum class Kind { replicate, shard, partial };

  constexpr Placement() = default;
  /// Every rank of the axis holds the same.
  static constexpr Placement replicate() { return {}; }
  /// Dimension `dim` is cut into balanced parts, one per rank of the axis.
  static constexpr Placement shard(int dim) { return Placement(Kind::shard, dim); }
  /// Each rank of the axis holds a term of a sum.
  static constexpr Placement partial() { return Placement(Kind::partial, -1); }

  constexpr Kind kind() const { return kind_; }
  constexpr bool is_replicate() const { return kind_ == Kind::replicate; }
  constexpr bool is_shard() const { return kind_ == Kind::shard; }
  constexpr bool is_shard(int dim) const { return is_shard() && dim_ == dim; }
  constexpr bool is_partial() const { return kind_ == Kind::partial; }
  /// The sharded dimension; -1 unless is_shard().
  constexpr int dim() const { return dim_; }

  friend constexpr bool operator==(const Placement&, const Placement&) = default;

 private:
  constexpr Placement(Kind kind, int dim) : kind_(kind), dim_(dim) {}
  Kind kind_ = Kind::replicate;
  int dim_ = -1;
};

/// One placement per mesh axis, in the order of the mesh. Where several axes shard one dimension,
/// the earlier axis makes the outer split and the later one splits its parts again.
using Placements = std::vector<Placement>;

using Shape = std::vector<Size>;

/// "Replicate", "Shard(0)", "Partial"
std::string to_string(const Placement& placement);
/// "data: Shard(0), model: Partial"
std::string to_string(const Placements& placements, const MeshShape& mesh);
/// "(4, 64)", "(7,)", "()"
std::string to_string(const Shape& shape);

Size num_elements(const Shape& shape);

Placements replicated(const MeshShape& mesh);

/// Error unless there is one placement per axis and every sharded dimension exists.
void check_placements(const Placements& placements, const MeshShape& mesh, std::size_t tensor_rank);

/// The part of a tensor that one rank holds: per dimension, in global indices.
struct Block {
  Shape offset;
  Shape extent;
  friend bool operator==(const Block&, const Block&) = default;
};

/// Block of `rank`; extents may be 0 where a dimension is shorter than the ranks that share it.
Block local_block(const Shape& global_shape, const Placements& placements, const MeshShape& mesh,
                  Size rank);

}  // namespace tessera
