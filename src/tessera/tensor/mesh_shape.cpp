// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/tensor/mesh_shape.hpp>

namespace tessera {
namespace {

std::string size_text(Size size) {
  for (const SizeWord& word : size_words)
    if (word.size == size) return std::string(word.name);
  return fmt::format("{}", size);
}

std::string spell(const std::vector<Axis>& axes) {
  std::vector<std::string> texts;
  for (const Axis& axis : axes) texts.push_back(axis.name + "=" + size_text(axis.size));
  return join(texts, ",");
}

template <class... Args>
[[noreturn]] void reject_mesh(std::string_view value, fmt::format_string<Args...> allowed,
                              Args&&... args) {
  throw ConfigError("mesh", value, allowed, std::forward<Args>(args)...);
}

bool is_name(std::string_view name) {
  const auto letter = [](unsigned char c) { return std::isalpha(c) != 0 || c == '_'; };
  const auto tail = [&](unsigned char c) { return letter(c) || std::isdigit(c) != 0; };
  return !name.empty() && letter(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), tail);
}

/// Rejects bad names and sizes. `rest`: -1 is allowed, also several times.
void check_axes(const std::vector<Axis>& axes, bool rest) {
  const std::string text = spell(axes);
  if (axes.empty()) reject_mesh("''", "must name at least one axis, as in data=4");
  if (axes.size() > AxisSet::most_axes)
    reject_mesh(text, "has more than {} axes", AxisSet::most_axes);
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const Axis& axis = axes[a];
    if (!is_name(axis.name)) reject_mesh(text, "'{}' is not an axis name", excerpt(axis.name));
    for (std::size_t b = 0; b < a; ++b) {
      if (axes[b].name == axis.name)
        reject_mesh(text, "axis names must be unique, but '{}' is given twice", excerpt(axis.name));
    }
    if (axis.size <= 0 && !(rest && axis.size == size_rest)) {
      reject_mesh(text, "sizes must be positive{}; '{}' has {}",
                  rest ? " or one -1 (the remaining ranks)" : "", excerpt(axis.name), axis.size);
    }
  }
}

/// Returns the product of the positive sizes.
Size product(const std::vector<Axis>& axes) {
  Size ranks = 1;
  for (const Axis& axis : axes) {
    if (axis.size <= 0) continue;
    if (ranks > most_ranks / axis.size)
      reject_mesh(spell(axes), "has more than {} ranks, the most that MPI can number",
                  with_thousands(most_ranks));
    ranks *= axis.size;
  }
  return ranks;
}

Axis parse_axis(std::string_view part, std::string_view whole) {
  const auto equals = part.find('=');
  if (equals == std::string_view::npos)
    reject_mesh(whole, "must be axes and sizes, as in data=2,model=4");
  const std::string_view number = trim(part.substr(equals + 1));
  Axis axis{std::string(trim(part.substr(0, equals))), 0};
  for (const SizeWord& word : size_words)
    if (word.name == number) return {axis.name, word.size};
  const auto [end, failure] =
      std::from_chars(number.data(), number.data() + number.size(), axis.size);
  if (failure != std::errc{} || end != number.data() + number.size()) {
    reject_mesh(whole, "the size of '{}' must be a whole number, nodes or per_node",
                excerpt(axis.name));
  }
  return axis;
}

/// Replaces size_nodes and size_per_node by numbers.
void count_nodes(std::vector<Axis>& axes, const Topology& topology) {
  const std::string text = spell(axes);
  for (Axis& axis : axes) {
    if (axis.size != size_nodes && axis.size != size_per_node) continue;
    if (!topology.is_known())
      reject_mesh(text,
                  "the number of nodes is known only in a launch; without one, set "
                  "distributed.num_processes_per_node");
    if (axis.size == size_per_node && !topology.per_node())
      reject_mesh(text, "needs the same number of ranks on every node; the nodes are {}",
                  nodes_text(topology));
    axis.size = axis.size == size_nodes ? topology.num_nodes() : *topology.per_node();
  }
}

}  // namespace

std::vector<Axis> parse_axes(std::string_view text) {
  std::vector<Axis> axes;
  for (const std::string& part : split_text(text, ',')) axes.push_back(parse_axis(part, text));
  return axes;
}

MeshShape::MeshShape(std::vector<Axis> axes)
    : axes_(std::move(axes)), strides_(axes_.size() + 1, 1) {
  check_axes(axes_, false);
  num_ranks_ = product(axes_);
  Size stride = 1;
  for (std::size_t a = axes_.size(); a-- > 0;) {
    strides_[a] = stride;
    stride *= axes_[a].size;
  }
}

MeshShape MeshShape::parse(std::string_view text, const Topology& topology) {
  return fit(parse_axes(text), topology);
}

MeshShape MeshShape::fit(std::vector<Axis> axes, const Topology& topology) {
  count_nodes(axes, topology);
  check_axes(axes, true);
  const std::string text = spell(axes);
  const Size known = product(axes), ranks = topology.ranks();
  Axis* rest = nullptr;
  for (Axis& axis : axes) {
    if (axis.size != size_rest) continue;
    if (rest != nullptr) reject_mesh(text, "only one size may be -1 (the remaining ranks)");
    rest = &axis;
  }
  if (rest != nullptr) {
    if (ranks < known || ranks % known != 0)
      reject_mesh(text, "the other sizes multiply to {}, which does not evenly divide the {}",
                  known, counted(ranks, "rank"));
    rest->size = ranks / known;
  } else if (known != ranks) {
    reject_mesh(text, "the sizes multiply to {}, which does not match the {}", known,
                counted(ranks, "rank"));
  }
  return MeshShape(std::move(axes));
}

MeshShape MeshShape::with_repeats(std::string_view axis, Size size) const {
  MeshShape mesh = *this;
  mesh.repeats_.size = size;
  if (const auto along = find(axis)) mesh.strides_.back() = strides_[*along];
  return mesh;
}

std::vector<std::string> MeshShape::axis_names() const {
  std::vector<std::string> names;
  for (const Axis& axis : axes_) names.push_back(axis.name);
  return names;
}

std::optional<std::size_t> MeshShape::find(std::string_view name) const {
  for (std::size_t a = 0; a <= axes_.size(); ++a)
    if (axis(a).name == name && (a < axes_.size() || repeats_.size > 1)) return a;
  return std::nullopt;
}

std::size_t MeshShape::require(std::string_view name, std::string_view key) const {
  if (const auto a = find(name)) return *a;
  const std::vector<std::string> names = axis_names();
  const auto nearest = suggest_nearest(name, names);
  throw ConfigError(key, name, "must be an axis of the mesh {}{}", to_string(),
                    nearest ? fmt::format(" (nearest: {})", *nearest) : "");
}

Size MeshShape::size_of(std::string_view name) const {
  const auto a = find(name);
  return a ? axis(*a).size : 1;
}

AxisSet MeshShape::all_axes() const {
  AxisSet all;
  for (std::size_t a = 0; a < axes_.size(); ++a) all = all | AxisSet{a};
  return all;
}

AxisSet MeshShape::axes_named(const std::vector<std::string_view>& names) const {
  AxisSet named;
  for (const std::string_view name : names)
    if (const auto axis = find(name)) named = named | AxisSet{*axis};
  return named;
}

std::string MeshShape::group_name(AxisSet axes) const {
  std::vector<std::string> members;
  for (const std::size_t a : axes)
    if (axis(a).size > 1) members.push_back(axis(a).name);
  return join(members, "+");
}

Size MeshShape::group_size(AxisSet axes) const {
  Size ranks = 1;
  for (const std::size_t a : axes) ranks *= axis(a).size;
  return ranks;
}

Size MeshShape::coordinate(Size rank, std::size_t axis) const {
  return rank / strides_[axis] % this->axis(axis).size;
}

Size MeshShape::coordinate(Size rank, std::string_view axis) const {
  const auto at = find(axis);
  return at ? coordinate(rank, *at) : 0;
}

Size MeshShape::coordinate(Size rank, AxisSet axes) const {
  Size place = 0;
  for (const std::size_t a : axes) place = place * axis(a).size + coordinate(rank, a);
  return place;
}

std::vector<Size> MeshShape::coordinates(Size rank) const {
  std::vector<Size> result(axes_.size());
  for (std::size_t a = 0; a < axes_.size(); ++a) result[a] = coordinate(rank, a);
  return result;
}

Size MeshShape::first_of_group(AxisSet axes, Size rank) const {
  for (const std::size_t a : axes) rank -= coordinate(rank, a) * strides_[a];
  return rank;
}

std::vector<Size> MeshShape::group(AxisSet axes, Size rank) const {
  std::vector<Size> ranks{first_of_group(axes, rank)};
  for (const std::size_t a : axes)
    for (std::size_t n = ranks.size(), i = 0; i < n * (axis(a).size - 1); ++i)
      ranks.push_back(ranks[i] + stride(a));
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

Size MeshShape::group_below(AxisSet axes, Size rank) const {
  Size below = 0, inner = group_size(axes);
  std::vector<std::size_t> outermost_first;
  for (const std::size_t a : axes) outermost_first.push_back(a);
  std::stable_sort(outermost_first.begin(), outermost_first.end(),
                   [&](std::size_t a, std::size_t b) { return strides_[a] > strides_[b]; });
  for (const std::size_t a : outermost_first) {
    const Size size = axis(a).size, coordinate = std::min(rank / strides_[a], size);
    inner /= size;
    below += coordinate * inner;
    if (coordinate == size) return below;
    rank -= coordinate * strides_[a];
  }
  return below + (rank > 0 ? 1 : 0);
}

Size MeshShape::rank_at(const std::vector<Size>& coordinates) const {
  Size rank = 0;
  for (std::size_t a = 0; a < axes_.size(); ++a) rank += coordinates.at(a) * strides_[a];
  return rank;
}

Size MeshShape::rank_at(std::string_view axis, Size coordinate) const {
  const auto at = find(axis);
  return at ? coordinate * strides_[*at] : 0;
}

std::string MeshShape::to_string() const { return spell(axes_); }

}  // namespace tessera
