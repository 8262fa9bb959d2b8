// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include <tessera/base/for_each.hpp>
#include <tessera/nn/columns.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

// Made once: launches allocate no memory for labels.
const std::string embedding_forward_label = "tessera::embedding";
const std::string embedding_table_label = "tessera::embedding_table_gradient";
const std::string embedding_position_label = "tessera::embedding_position_gradient";

/// The positions of the rows of a sample: two runs.
struct RowPositions {
  Range first, second;

  explicit RowPositions(const LayerSpec& layer)
      : first(layer.share.parts > 1 ? layer.share.own_run(0) : layer.part('p')),
        second(layer.share.parts > 1 ? layer.share.own_run(1) : Range{}) {}

  KOKKOS_INLINE_FUNCTION Size of(Size row) const {
    return row < first.count ? first.begin + row : second.begin + row - first.count;
  }
  /// Returns the row of a position; -1 if another rank has it.
  KOKKOS_INLINE_FUNCTION Size row_of(Size position) const {
    const Size a = position - first.begin, b = position - second.begin;
    if (a >= 0 && a < first.count) return a;
    return b >= 0 && b < second.count ? first.count + b : -1;
  }
};

/// A row of y = table[x] + position. A rank adds the rows of the table that it has, and the rank
/// with row 0 adds the positions. Numbers that are no class give NaN.
template <class T, class Y>
struct LookUp {
  using Math = StateOf<T>;
  const Math* x;
  const T *table, *position;
  Y* y;
  Size width, context, classes, first, own;
  RowPositions positions;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const Size row = team.league_rank();
    const Math number = x[row];
    const bool is_class = number >= Math(0) && number < static_cast<Math>(classes);
    const Size at = is_class ? static_cast<Size>(number) - first : Size(-1);
    const T* const entry = at >= 0 && at < own ? table + at * width : nullptr;
    const T* const place = first == 0 ? position + positions.of(row % context) * width : nullptr;
    Y* const to = y + row * width;
    const auto columns = Kokkos::TeamVectorRange(team, width);
    // Two loops: compilers do not vectorise a loop with choices inside.
    if (entry && place)
      return detail::for_each_lane(columns, width,
                                   [=](Size j) { to[j] = Math(place[j]) + entry[j]; });
    detail::for_each_lane(columns, width, [=](Size j) {
      const Math sum = (place ? Math(place[j]) : Math(0)) + (entry ? Math(entry[j]) : Math(0));
      to[j] = is_class ? sum : Kokkos::Experimental::quiet_NaN_v<Math>;
    });
  }
};

template <class T, class Y>
void look_up(const LayerCall<T>& call, Y* y) {
  const Size width = call.layer.out(), context = call.layer.positions();
  const Range own = call.layer.part('v');
  for_each_row(embedding_forward_label, call.samples * context, width,
               LookUp<T, Y>{call.batch.x.data(), call.parameters[0].data(),
                            call.parameters[1].data(), y, width, context, call.layer.whole('v'),
                            own.begin, own.count, RowPositions(call.layer)});
}

/// table[x[i]] += dy[i]. Each team has a part of the table and a block of columns, so that every
/// sum adds the rows in order, for any number of threads.
template <class T>
struct TableGradient {
  using Math = StateOf<T>;
  const Math* x;
  const T* dy;
  Math* table;
  Size rows, width, parts, block, first, own;
  bool add;

  KOKKOS_INLINE_FUNCTION Size blocks() const { return (width + block - 1) / block; }

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const Range entries = balanced_split(own, parts, team.league_rank() / blocks());
    const Size begin = team.league_rank() % blocks() * block;
    const Size count = begin + block < width ? block : width - begin;
    const auto columns = Kokkos::TeamVectorRange(team, count);
    for (Size at = entries.begin; at < entries.end() && !add; ++at) {
      Math* const to = table + at * width + begin;
      detail::for_each_lane(columns, count, [=](Size j) { to[j] = 0; });
    }
    for (Size i = 0; i < rows; ++i) {
      const Size at = static_cast<Size>(x[i]) - first;
      if (at < entries.begin || at >= entries.end()) continue;
      Math* const to = table + at * width + begin;
      const T* const from = dy + i * width + begin;
      detail::for_each_lane(columns, count, [=](Size j) { to[j] += from[j]; });
    }
  }
};

template <class T>
void embedding_backward(const LayerCall<T>& call) {
  using Math = StateOf<T>;
  const Size width = call.layer.out(), context = call.layer.positions(), samples = call.samples;
  const Size rows = samples * context;
  const auto [first, own] = call.layer.part('v');
  const T* const dy = call.output_gradient.data();
  // Blocks of columns keep a core's part of the table in its cache; a GPU needs many teams.
  const Size parts = on_host ? 1 : own, block = on_host ? 64 : width;
  const TableGradient<T> table{call.batch.x.data(),
                               dy,
                               call.parameter_gradients[0].data(),
                               rows,
                               width,
                               parts,
                               block,
                               first,
                               own,
                               call.add_parameter_gradients};
  for_each_row(embedding_table_label, parts * table.blocks(), on_host ? rows * block : width,
               table);
  Math* const position = call.parameter_gradients[1].data();
  const Size elements = context * width;
  const bool add = call.add_parameter_gradients;
  const RowPositions positions(call.layer);
  for_each(
      embedding_position_label, call.layer.parameters[1].shape[0] * width,
      KOKKOS_LAMBDA(Size i) {
        Math sum = add ? position[i] : Math(0);
        const Size row = positions.row_of(i / width);
        for (Size s = 0; s < samples && row >= 0; ++s)
          sum += dy[s * elements + row * width + i % width];
        position[i] = sum;
      },
      samples * elements);
}

constexpr LayerRow embedding_row{
    .name = "embedding",
    .expression = {.inputs = {{.indices = "sp,", .gradient = ""}},
                   .parameters = {{"v,c"}, {.indices = "p,c", .term = 1}},
                   .output = "sp,c",
                   .whole = "c"},
    .rules_choose = true,
    .reads_batch = true,
    .reads_exact_x = true,
    .reads_inputs = always,
    .forward =
        [](const auto& call) { call.with_output([&](const auto& y) { look_up(call, y.data()); }); },
    .backward = [](const auto& call) { embedding_backward(call); }};

}  // namespace

LayerSpec embedding(std::string name, std::string unit, Size vocabulary, Size context, Size width,
                    std::uint32_t stream) {
  LayerSpec layer{&embedding_row,
                  std::move(name),
                  std::move(unit),
                  {LayerSpec::data},
                  {{'v', vocabulary}, {'p', context}, {'c', width}}};
  layer.parameters = {{"table", {vocabulary, width}, {"vocab", "embed"}, Initial::drawn, stream},
                      {"position", {context, width}, {"", "embed"}, Initial::drawn, stream + 1}};
  return layer;
}

}  // namespace tessera
