// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <vector>

#include <tessera/base/split.hpp>

namespace tessera {

/// Extents, outermost first.
using Shape = std::vector<Size>;

inline Size num_elements(const Shape& shape) {
  Size n = 1;
  for (const Size extent : shape) n *= extent;
  return n;
}

/// How a tensor is distributed along one mesh axis.
class Placement {
 public:
  enum class Kind { replicate, partial, shard };

  constexpr Placement() = default;
  /// Every rank of the axis holds the whole tensor.
  static constexpr Placement replicate() { return {}; }
  /// Every rank of the axis holds a part of dimension `dim`, which is split evenly.
  static constexpr Placement shard(int dim) { return Placement(Kind::shard, dim); }
  /// Every rank of the axis holds a term; the tensor is their sum.
  static constexpr Placement partial() { return Placement(Kind::partial, -1); }

  constexpr Kind kind() const { return kind_; }
  constexpr bool is_replicate() const { return kind_ == Kind::replicate; }
  constexpr bool is_shard() const { return kind_ == Kind::shard; }
  constexpr bool is_shard(int dim) const { return is_shard() && dim_ == dim; }
  constexpr bool is_partial() const { return kind_ == Kind::partial; }
  /// The sharded dimension; -1 unless is_shard().
  constexpr int dim() const { return dim_; }
  /// Shards: consecutive indices that stay together, and consecutive ranks that hold the same part.
  constexpr Size unit() const { return unit_; }
  constexpr Size repeats() const { return repeats_; }
  /// Shards: Split::blocks, Split::filled and Split::held.
  constexpr Size blocks() const { return blocks_; }
  constexpr Size filled() const { return filled_; }
  constexpr const HeldRows& held() const { return held_; }

  /// Return the same placement of another dimension, in units, on every `repeats` ranks, or in
  /// blocks, perhaps on the first ranks only or of rows of which some are held.
  constexpr Placement of_dim(int dim) const {
    Placement placement = *this;
    placement.dim_ = dim;
    return placement;
  }
  constexpr Placement in_units(Size unit) const {
    Placement placement = *this;
    placement.unit_ = unit;
    return placement;
  }
  constexpr Placement on_every(Size repeats) const {
    Placement placement = *this;
    placement.repeats_ = repeats;
    return placement;
  }
  constexpr Placement in_blocks(Size blocks, Size filled = 0, const HeldRows& held = {}) const {
    Placement placement = *this;
    placement.blocks_ = blocks, placement.filled_ = filled, placement.held_ = held;
    return placement;
  }

  constexpr auto operator<=>(const Placement&) const = default;

 private:
  constexpr Placement(Kind kind, int dim) : kind_(kind), dim_(dim) {}
  Kind kind_ = Kind::replicate;
  int dim_ = -1;
  Size unit_ = 1, repeats_ = 1, blocks_ = 0, filled_ = 0;
  HeldRows held_{};
};

}  // namespace tessera
