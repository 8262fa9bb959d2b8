// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/tensor/mesh_shape.hpp>
#include <tessera/tensor/piece.hpp>

namespace tessera {

/// The largest number of ranges in a description of ranks; the rest is given as a number.
inline constexpr std::size_t shown_ranges = 6;

/// Cuts of the axes of a mesh into runs of coordinates. The user cuts where the parts that ranks
/// hold change, so all ranks between two cuts hold parts of equal size. The number of cuts depends
/// on the tensors, not on the number of ranks.
class MeshCuts {
 public:
  explicit MeshCuts(const MeshShape& mesh) : mesh_(&mesh), begins_(mesh.num_axes(), {0}) {}

  /// Cuts before this coordinate of an axis.
  void cut(std::size_t axis, Size coordinate);
  /// Cuts before every coordinate of an axis.
  void cut_all(std::size_t axis);
  /// Cuts every group of ranks over these axes before its rank number `place`.
  void cut(const std::vector<std::size_t>& axes, Size place);
  /// Cuts where the parts of a balanced split of `count` elements over these axes become smaller.
  void cut_split(const std::vector<std::size_t>& axes, Size count);
  /// Cuts before and after the part of that split that holds element number `element`. Does nothing
  /// if `element` is not less than `count`.
  void cut_around(const std::vector<std::size_t>& axes, Size count, Size element);
  /// Cuts where pieces of a tensor have other extents. Returns the extents by dimension.
  std::vector<std::set<Size>> cut_pieces(const Shape& shape, const Cuts& of_tensor);

  const MeshShape& mesh() const { return *mesh_; }
  const std::vector<std::set<Size>>& begins() const { return begins_; }

 private:
  const MeshShape* mesh_;
  std::vector<std::set<Size>> begins_;  ///< by axis, the first coordinate of each run
};

/// The boxes into which MeshCuts divide a mesh. A box is the product of one run of coordinates per
/// axis. Boxes are numbered row-major, so they are ordered by their first ranks.
class RankBoxes {
 public:
  using Group = std::vector<Size>;  ///< numbers of boxes, ascending

  explicit RankBoxes(const MeshCuts& cuts);

  Size size() const { return boxes_.num_ranks(); }
  Group all() const;
  /// Returns the mesh whose ranks are the boxes, with the axes of the ranks' mesh.
  const MeshShape& mesh() const { return boxes_; }
  Size first_rank(Size box) const;
  /// Returns the number of ranks of the box in one group of ranks over these axes.
  Size group_size(Size box, const std::vector<std::size_t>& axes) const;

  Size num_ranks(const Group& group) const;
  /// Returns the ranks of a group as ranges of contiguous ranks, ascending; at most the first
  /// `most` ranges.
  std::vector<Range> ranges(const Group& group, std::size_t most) const;
  /// Returns "every rank", "rank 3" or "ranks 0-2,5". A long list ends with "..." and the number of
  /// ranks.
  std::string describe(const Group& group) const;
  /// Returns "0-2,5". A very long list ends with "..." and the number of ranks.
  std::string number_ranges(const Group& group) const;

 private:
  Range run(Size box, std::size_t axis) const;
  std::string number_ranges(const Group& group, std::size_t most) const;

  MeshShape ranks_, boxes_;
  std::vector<std::vector<Size>>
      begins_;  ///< by axis, the first coordinate of each run, and the end of the last
};

/// Boxes with equal values, ordered by first rank.
template <class Value>
struct RankGroup {
  Value value;
  RankBoxes::Group boxes;
};

/// Groups boxes by the value that `of_rank` returns for the first rank of each box.
template <class Value, class OfRank>
std::vector<RankGroup<Value>> group_boxes(const RankBoxes& boxes, const RankBoxes::Group& of,
                                          OfRank&& of_rank) {
  std::vector<RankGroup<Value>> groups;
  std::map<Value, std::size_t> index;
  for (const Size box : of) {
    Value value = of_rank(boxes.first_rank(box));
    const auto [at, is_new] = index.try_emplace(value, groups.size());
    if (is_new) groups.push_back({std::move(value), {}});
    groups[at->second].boxes.push_back(box);
  }
  return groups;
}

}  // namespace tessera
