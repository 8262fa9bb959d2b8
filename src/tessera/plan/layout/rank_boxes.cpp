// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/plan/layout/rank_boxes.hpp>

namespace tessera {
namespace {

constexpr std::size_t listed_ranges = 4096;  // of number_ranges(), which JSON documents contain

/// A list of at most `most` ranges. Adjacent ranges are joined.
class RangeList {
 public:
  explicit RangeList(std::size_t most) : most_(most) {}

  /// Returns false if the list is full.
  bool add(Range range) {
    if (!ranges_.empty() && ranges_.back().end() == range.begin)
      ranges_.back().count += range.count;
    else if (ranges_.size() == most_)
      return false;
    else
      ranges_.push_back(range);
    return true;
  }
  std::vector<Range> take() { return std::move(ranges_); }

 private:
  std::size_t most_;
  std::vector<Range> ranges_;
};

std::string text_of(Range range) {
  return range.count == 1 ? fmt::format("{}", range.begin)
                          : fmt::format("{}-{}", range.begin, range.end() - 1);
}

/// Returns the number of the part that holds `element` in a balanced split of `count` elements.
Size part_with(Size count, Size parts, Size element) {
  const Size small = count / parts, larger = count % parts, in_larger = larger * (small + 1);
  return element < in_larger ? element / (small + 1) : larger + (element - in_larger) / small;
}

}  // namespace

void MeshCuts::cut(std::size_t axis, Size coordinate) {
  if (coordinate > 0 && coordinate < mesh_->axes()[axis].size) begins_[axis].insert(coordinate);
}

void MeshCuts::cut_all(std::size_t axis) {
  for (Size c = 1; c < mesh_->axes()[axis].size; ++c) cut(axis, c);
}

void MeshCuts::cut(const std::vector<std::size_t>& axes, Size place) {
  if (place >= mesh_->group_size(axes)) return;
  for (std::size_t i = axes.size(); i-- > 0;) {
    const Size size = mesh_->axes()[axes[i]].size, coordinate = place % size;
    cut(axes[i], coordinate);
    // Ranks with this coordinate lie on both sides of the cut, depending on their coordinates along
    // the later axes.
    if (i + 1 < axes.size()) cut(axes[i], coordinate + 1);
    place /= size;
  }
}

void MeshCuts::cut_split(const std::vector<std::size_t>& axes, Size count) {
  cut(axes, count % mesh_->group_size(axes));
}

void MeshCuts::cut_around(const std::vector<std::size_t>& axes, Size count, Size element) {
  if (element >= count) return;
  const Size part = part_with(count, mesh_->group_size(axes), element);
  cut(axes, part);
  cut(axes, part + 1);
}

std::vector<std::set<Size>> MeshCuts::cut_pieces(const Shape& shape, const Cuts& of_tensor) {
  std::vector<std::set<Size>> extents;
  for (const Size extent : shape) extents.push_back({extent});
  for (const Cut& cut : of_tensor) {
    const Size parts = mesh_->group_size(cut.axes);
    std::set<Size> counts;
    for (const Size whole : extents[cut.dimension]) {
      cut_split(cut.axes, whole / cut.unit);
      counts.insert(split_units(whole, cut.unit, parts, 0).count);
      counts.insert(split_units(whole, cut.unit, parts, parts - 1).count);
    }
    extents[cut.dimension] = std::move(counts);
  }
  return extents;
}

RankBoxes::RankBoxes(const MeshCuts& cuts) : ranks_(cuts.mesh()), boxes_(cuts.mesh()) {
  std::vector<Axis> axes = ranks_.axes();
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const std::set<Size>& begins = cuts.begins()[a];
    begins_.emplace_back(begins.begin(), begins.end()).push_back(axes[a].size);
    axes[a].size = static_cast<Size>(begins.size());
  }
  boxes_ = MeshShape(axes);
}

RankBoxes::Group RankBoxes::all() const {
  Group boxes(size());
  std::iota(boxes.begin(), boxes.end(), Size{0});
  return boxes;
}

Range RankBoxes::run(Size box, std::size_t axis) const {
  const auto number = static_cast<std::size_t>(boxes_.coordinate(box, axis));
  const Size begin = begins_[axis][number];
  return {begin, begins_[axis][number + 1] - begin};
}

Size RankBoxes::first_rank(Size box) const {
  std::vector<Size> at;
  for (std::size_t a = 0; a < begins_.size(); ++a) at.push_back(run(box, a).begin);
  return ranks_.rank_at(at);
}

Size RankBoxes::group_size(Size box, const std::vector<std::size_t>& axes) const {
  Size ranks = 1;
  for (const std::size_t a : axes) ranks *= run(box, a).count;
  return ranks;
}

Size RankBoxes::num_ranks(const Group& group) const {
  Size sum = 0;
  for (const Size box : group) {
    Size ranks = 1;
    for (std::size_t a = 0; a < begins_.size(); ++a) ranks *= run(box, a).count;
    sum += ranks;
  }
  return sum;
}

std::vector<Range> RankBoxes::ranges(const Group& group, std::size_t most) const {
  // Returns the ranges of the group's ranks in a block of `block` ranks: those that share the
  // coordinates of box `first_box` along the axes before `axis`. Ranks count from the start of the
  // block. All coordinates of a run have the same ranges, so one of them is computed.
  const std::function<std::vector<Range>(std::size_t, Size, Size)> below =
      [&](std::size_t axis, Size first_box, Size block) -> std::vector<Range> {
    if (axis == begins_.size())
      return std::binary_search(group.begin(), group.end(), first_box) ? std::vector<Range>{{0, 1}}
                                                                       : std::vector<Range>{};
    const Size inner = block / ranks_.axes()[axis].size;
    RangeList list(most);
    for (std::size_t i = 0; i + 1 < begins_[axis].size(); ++i) {
      const Range run{begins_[axis][i], begins_[axis][i + 1] - begins_[axis][i]};
      const Size box = first_box * boxes_.axes()[axis].size + static_cast<Size>(i);
      const std::vector<Range> each = below(axis + 1, box, inner);
      if (each.empty()) continue;
      if (each.front().count == inner) {
        list.add({run.begin * inner, run.count * inner});
        continue;
      }
      bool fits = true;
      for (Size c = run.begin; fits && c < run.end(); ++c)
        for (const Range& range : each)
          fits = fits && list.add({c * inner + range.begin, range.count});
      if (!fits) break;
    }
    return list.take();
  };
  return below(0, 0, ranks_.num_ranks());
}

std::string RankBoxes::number_ranges(const Group& group, std::size_t most) const {
  std::string text;
  Size shown = 0;
  for (const Range& range : ranges(group, most)) {
    if (!text.empty()) text += ',';
    text += text_of(range);
    shown += range.count;
  }
  const Size all = num_ranks(group);
  return shown == all ? text : fmt::format("{},... ({} ranks)", text, with_thousands(all));
}

std::string RankBoxes::number_ranges(const Group& group) const {
  return number_ranges(group, listed_ranges);
}

std::string RankBoxes::describe(const Group& group) const {
  const Size all = num_ranks(group);
  if (all == ranks_.num_ranks()) return "every rank";
  return (all == 1 ? "rank " : "ranks ") + number_ranges(group, shown_ranges);
}

}  // namespace tessera
