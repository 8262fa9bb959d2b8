// SPDX-License-Identifier: Apache-2.0
// Ranks that are alike: classes of coordinates, and groups of ranks with equal values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/tensor/mesh_shape.hpp>
#include <tessera/tensor/piece.hpp>

namespace tessera {

/// The classes of the coordinates of each axis. Two coordinates are of one class if every cut gives
/// them equal extents. The parts of a balanced split become smaller once, so a class is a run of
/// coordinates, and the number of classes depends on the tensors, not on the number of ranks.
class AxisClasses {
 public:
  explicit AxisClasses(const MeshShape& mesh);

  /// Makes each coordinate of these axes a class.
  void separate(AxisSet axes);
  /// Separates, in every group of ranks over these axes, rank number `place` from the one before.
  void cut(AxisSet axes, Size place);
  /// Separates coordinates whose pieces of a tensor have other extents. Returns all extents that
  /// ranks have, by dimension.
  std::vector<std::set<Size>> cut_pieces(const Shape& shape, const Cuts& of_tensor);
  /// Separates coordinates whose parts of a vector of `elements` elements contain other numbers of
  /// elements of `range`.
  void cut_range(const Cuts& parts, Size elements, Range range);

  const MeshShape& mesh() const { return *mesh_; }
  const std::vector<std::set<Size>>& begins() const { return begins_; }

 private:
  const MeshShape* mesh_;
  std::vector<std::set<Size>> begins_;  ///< by axis, the first coordinate of each class
};

/// The classes of the ranks of a mesh, one for each choice of a class of coordinates on every axis.
/// They are numbered row-major, so they are ordered by their first ranks.
class RankClasses {
 public:
  using Numbers = std::vector<Size>;  ///< of classes, ascending

  explicit RankClasses(const AxisClasses& axes);

  /// Returns the mesh whose ranks are the classes, with the axes of the ranks' mesh.
  const MeshShape& mesh() const { return classes_; }
  Size first_rank(Size number) const;
  /// Returns the number of the class of a rank's coordinate.
  Size class_along(std::size_t axis, Size rank) const;
  /// Returns the number of ranks of a class in one group of ranks over these axes.
  Size group_size(Size number, AxisSet axes) const;

  Size num_ranks(const Numbers& of) const;
  /// Returns the ranks as ranges of contiguous ranks, ascending; at most the first `most` ranges.
  std::vector<Range> ranges(const Numbers& of, std::size_t most) const;
  /// Returns "every rank", "rank 3" or "ranks 0-2,5". A long list ends with "..." and the number of
  /// ranks.
  std::string describe(const Numbers& of) const;
  /// Returns "0-2,5". A very long list ends with "..." and the number of ranks.
  std::string number_ranges(const Numbers& of) const;

 private:
  Range coordinates(Size number, std::size_t axis) const;
  std::string number_ranges(const Numbers& of, std::size_t most) const;

  MeshShape ranks_, classes_;
  std::vector<std::vector<Size>>
      begins_;  ///< by axis, the first coordinate of each class, and the end of the last
};

/// Groups of ranks with equal values, ordered by first rank.
template <class Value>
struct RankGroups {
  struct Group {
    Value value;
    RankClasses::Numbers classes;
  };
  RankClasses ranks;
  std::vector<Group> groups;

  Size first_rank(const Group& group) const { return ranks.first_rank(group.classes.front()); }
};

/// Returns one group per class, with its number.
RankGroups<Size> groups_of(const AxisClasses& axes);

/// Joins the groups for whose first ranks `of_rank` returns equal values.
template <class Other, class OfRank>
auto joined(const RankGroups<Other>& all, const OfRank& of_rank) {
  using Value = std::decay_t<decltype(of_rank(Size{}))>;
  RankGroups<Value> result{all.ranks, {}};
  std::map<Value, std::size_t> known;
  for (const auto& group : all.groups) {
    const auto [at, is_new] =
        known.try_emplace(of_rank(all.first_rank(group)), result.groups.size());
    if (is_new) result.groups.push_back({at->first, {}});
    RankClasses::Numbers& classes = result.groups[at->second].classes;
    classes.insert(classes.end(), group.classes.begin(), group.classes.end());
  }
  for (auto& group : result.groups) std::sort(group.classes.begin(), group.classes.end());
  return result;
}

}  // namespace tessera
