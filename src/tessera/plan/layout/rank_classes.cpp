// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/plan/layout/rank_classes.hpp>

namespace tessera {
namespace {

// The largest numbers of ranges in texts and in JSON documents; the rest is given as a number.
constexpr std::size_t shown_ranges = 6, listed_ranges = 4096;

/// Returns the number of the part that holds `element` in a balanced split of `count` elements.
Size part_with(Size count, Size parts, Size element) {
  const Size small = count / parts, larger = count % parts, in_larger = larger * (small + 1);
  return element < in_larger ? element / (small + 1) : larger + (element - in_larger) / small;
}

/// Lists the ranks of some classes as ranges.
struct RangeLister {
  const MeshShape& mesh;
  const std::vector<std::vector<Size>>& begins;  ///< as RankClasses::begins_
  const RankClasses::Numbers& of;
  std::size_t most;
  bool is_full = false;
  std::vector<Range> ranges{};

  Size wanted(Range classes) const {
    return std::lower_bound(of.begin(), of.end(), classes.end()) -
           std::lower_bound(of.begin(), of.end(), classes.begin);
  }

  /// Adds those among `classes`, which differ along `axis` and later axes. Their ranks are among
  /// those that begin with `first`.
  void add(std::size_t axis, Range classes, Size first) {
    const Size stride = mesh.stride(axis),
               inner = classes.count / static_cast<Size>(begins[axis].size() - 1);
    for (std::size_t i = 0; i + 1 < begins[axis].size(); ++i) {
      const Range in_class{classes.begin + static_cast<Size>(i) * inner, inner};
      const Range at{begins[axis][i], begins[axis][i + 1] - begins[axis][i]};
      const Size count = wanted(in_class);
      if (count == inner) add({first + at.begin * stride, at.count * stride});
      for (Size c = at.begin; 0 < count && count < inner && c < at.end() && !is_full; ++c)
        add(axis + 1, in_class, first + c * stride);
    }
  }

  /// Adds a range, and joins it with an adjacent one.
  void add(Range range) {
    if (!ranges.empty() && ranges.back().end() == range.begin)
      ranges.back().count += range.count;
    else if (ranges.size() == most)
      is_full = true;
    else
      ranges.push_back(range);
  }
};

}  // namespace

void AxisClasses::separate(AxisSet axes) {
  for (const std::size_t axis : axes)
    for (Size c = 1; c < mesh_->axes()[axis].size; ++c) begins_[axis].insert(c);
}

/// Ranks of `model` that share a part are one class each.
AxisClasses::AxisClasses(const MeshShape& mesh) : mesh_(&mesh), begins_(mesh.num_axes(), {0}) {
  if (mesh.group_size(mesh.repeats()) > 1) separate(mesh.axes_named({"model"}));
}

void AxisClasses::cut(AxisSet axes, Size place) {
  axes = axes - mesh_->repeats();
  Size inner = mesh_->group_size(axes);  // ranks of the group with equal coordinates so far
  if (place >= inner) return;
  for (const std::size_t axis : axes) {
    const Size size = mesh_->axes()[axis].size;
    inner /= size;
    const Size coordinate = place / inner % size;
    begins_[axis].insert(coordinate);
    // Ranks with this coordinate lie on both sides of the cut, depending on their coordinates along
    // the later axes.
    if (inner > 1 && coordinate + 1 < size) begins_[axis].insert(coordinate + 1);
  }
}

std::vector<std::set<Size>> AxisClasses::cut_pieces(const Shape& shape, const Cuts& of_tensor) {
  std::vector<std::set<Size>> extents;
  for (const Size extent : shape) extents.push_back({extent});
  for (const Cut& of : of_tensor) {
    const Size parts = mesh_->group_size(of.axes) / of.repeats;
    for (std::size_t d = of.dimension + 1; d < of.dimension + of.joined; ++d) {
      std::set<Size> products;
      for (const Size outer : extents[of.dimension])
        for (const Size inner : extents[d]) products.insert(outer * inner);
      extents[of.dimension] = std::move(products);
      extents[d] = {1};
    }
    if (of.shift + of.blocks > 0) separate(of.axes);
    std::set<Size> counts;
    for (const Size whole : extents[of.dimension]) {
      const Split split{whole / of.unit, parts, of.unit, false, of.blocks};
      counts.insert({split.count(0), split.count(parts - 1)});
      if (of.blocks == 0) cut(of.axes, split.units % parts);
      for (Size part = 1; of.blocks > 0 && part < parts; ++part) {
        counts.insert(split.count(part));
        if (split.count(part) != split.count(part - 1) ||
            split.blocks_of(part).count != split.blocks_of(part - 1).count)
          cut(of.axes, part);
      }
    }
    extents[of.dimension] = std::move(counts);
  }
  return extents;
}

void AxisClasses::cut_range(const Cuts& parts, Size elements, Range range) {
  cut_pieces({elements}, parts);
  for (Size element : {range.begin, range.end()}) {
    if (range.count == 0 || element >= elements) continue;
    Size whole = elements;
    for (const Cut& of : parts) {
      const Size number = mesh_->group_size(of.axes), part = part_with(whole, number, element);
      cut(of.axes, part);
      cut(of.axes, part + 1);
      const Range with = balanced_split(whole, number, part);
      element -= with.begin;
      whole = with.count;
    }
  }
}

RankClasses::RankClasses(const AxisClasses& of) : ranks_(of.mesh()), classes_(of.mesh()) {
  std::vector<Axis> axes = ranks_.axes();
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const std::set<Size>& begins = of.begins()[a];
    begins_.emplace_back(begins.begin(), begins.end()).push_back(axes[a].size);
    axes[a].size = static_cast<Size>(begins.size());
  }
  classes_ = MeshShape(axes).with_repeats("model", ranks_.group_size(ranks_.repeats()));
}

Range RankClasses::coordinates(Size number, std::size_t axis) const {
  const auto begin = begins_[axis].begin() + classes_.coordinate(number, axis);
  return {*begin, begin[1] - *begin};
}

Size RankClasses::first_rank(Size number) const {
  std::vector<Size> at;
  for (std::size_t a = 0; a < begins_.size(); ++a) at.push_back(coordinates(number, a).begin);
  return ranks_.rank_at(at);
}

Size RankClasses::class_along(std::size_t axis, Size rank) const {
  const std::vector<Size>& begins = begins_[axis];
  return std::upper_bound(begins.begin(), begins.end(), ranks_.coordinate(rank, axis)) -
         begins.begin() - 1;
}

Size RankClasses::group_size(Size number, AxisSet axes) const {
  Size ranks = 1;
  for (const std::size_t a : axes - ranks_.repeats()) ranks *= coordinates(number, a).count;
  return ranks;
}

Size RankClasses::num_ranks(const Numbers& of) const {
  Size sum = 0;
  for (const Size number : of) sum += group_size(number, ranks_.all_axes());
  return sum;
}

std::vector<Range> RankClasses::ranges(const Numbers& of, std::size_t most) const {
  RangeLister lister{ranks_, begins_, of, most};
  lister.add(0, {0, classes_.num_ranks()}, 0);
  return std::move(lister.ranges);
}

std::string RankClasses::number_ranges(const Numbers& of, std::size_t most) const {
  std::vector<std::string> texts;
  Size shown = 0;
  for (const Range& range : ranges(of, most)) {
    texts.push_back(range.count == 1 ? fmt::format("{}", range.begin)
                                     : fmt::format("{}-{}", range.begin, range.end() - 1));
    shown += range.count;
  }
  const Size all = num_ranks(of);
  return join(texts, ",") +
         (shown == all ? "" : fmt::format(",... ({} ranks)", with_thousands(all)));
}

std::string RankClasses::number_ranges(const Numbers& of) const {
  return number_ranges(of, listed_ranges);
}

std::string RankClasses::describe(const Numbers& of) const {
  const Size all = num_ranks(of);
  if (all == ranks_.num_ranks()) return "every rank";
  return (all == 1 ? "rank " : "ranks ") + number_ranges(of, shown_ranges);
}

RankGroups<Size> groups_of(const AxisClasses& axes) {
  RankGroups<Size> all{RankClasses(axes), {}};
  for (Size number = 0; number < all.ranks.mesh().num_ranks(); ++number)
    all.groups.push_back({number, {number}});
  return all;
}

}  // namespace tessera
