// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/mesh/mesh_shape.hpp>

namespace tessera {

/// Ranges of ranks that descriptions name before they give their number only.
inline constexpr std::size_t shown_ranges = 6;

/// Cuts of the coordinates of a mesh: ranks between two cuts are alike. The number of cuts depends
/// on what ranks hold, not on how many ranks there are.
class MeshCuts {
 public:
  explicit MeshCuts(const MeshShape& mesh) : mesh_(&mesh), begins_(mesh.num_axes(), {0}) {}

  /// Before this coordinate of an axis.
  void cut(std::size_t axis, Size coordinate);
  /// Before every coordinate of an axis.
  void cut_all(std::size_t axis);
  /// Before this place among the ranks of a group over several axes.
  void cut(const std::vector<std::size_t>& axes, Size place);
  /// Cuts where the parts of a balanced split of `count` over these axes become smaller.
  void cut_split(const std::vector<std::size_t>& axes, Size count);
  /// Around the part of that split that holds element `element`, if one does.
  void cut_around(const std::vector<std::size_t>& axes, Size count, Size element);
  /// Cuts as a count is split along one axis after the other; returns the sizes of all parts.
  std::set<Size> cut_in_turn(const std::vector<std::size_t>& axes, Size count);

  const MeshShape& mesh() const { return *mesh_; }
  const std::vector<std::set<Size>>& begins() const { return begins_; }

 private:
  const MeshShape* mesh_;
  std::vector<std::set<Size>> begins_;  ///< by axis: the first coordinates of its runs
};

/// The ranks of a mesh in boxes: all combinations of a run of coordinates along each axis. Boxes
/// are numbered like the ranks of a mesh that has one coordinate for each run, so they are in the
/// order of their first ranks.
class RankBoxes {
 public:
  using Group = std::vector<Size>;  ///< some boxes, ascending

  explicit RankBoxes(const MeshCuts& cuts);

  Size number() const { return boxes_.num_ranks(); }
  Group all() const;
  /// The mesh of the boxes: a group of boxes over some axes stands for groups of ranks over them.
  const MeshShape& mesh() const { return boxes_; }
  Size first_rank(Size box) const;
  /// How many ranks of one group over these axes the box holds.
  Size group_size(Size box, const std::vector<std::size_t>& axes) const;

  Size num_ranks(const Group& group) const;
  /// The runs of neighbouring ranks in a group, ascending; the first `most` of them.
  std::vector<Range> ranges(const Group& group, std::size_t most) const;
  /// "every rank", "rank 3", "ranks 0-2,5"; of many ranges the first ones and the number of ranks.
  std::string describe(const Group& group) const;
  /// "0-2,5"; of very many ranges the first ones and the number of ranks.
  std::string numbers(const Group& group) const;

 private:
  Range run(Size box, std::size_t axis) const;
  std::string numbers(const Group& group, std::size_t most) const;

  MeshShape ranks_, boxes_;
  std::vector<std::vector<Size>> begins_;  ///< by axis, with the end
};

/// Boxes with equal values, first rank first: what to print of 100,000 ranks.
template <class Value>
struct RankGroup {
  Value value;
  RankBoxes::Group boxes;
};

/// `of_rank` is asked of the first rank of each of these boxes.
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
