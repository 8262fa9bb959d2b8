// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/layers/shared_rows.hpp>
#include <tessera/nn/rows.hpp>

namespace tessera {
namespace {

/// y = table[x] + position. A rank adds the rows of the table that it has, and the rank with row 0
/// adds the positions. Numbers that are no class give NaN.
template <class T, class Y>
void look_up(const LayerCall<T>& call, Y* y) {
  using Math = StateOf<T>;
  const LayerSpec& layer = call.layer;
  const Size width = layer.out(), context = layer.positions(), classes = layer.total('v');
  const Range own = layer.part('v');
  const detail::OwnRuns positions(detail::share_of(layer, context));
  const Math* const x = call.batch.x.data();
  const T *const table = call.parameters[0].data(), *const position =
                                                        data_or_null(call.parameters[1]);
  for_rows(
      "tessera::embedding"_label, call.samples * context, width, KOKKOS_LAMBDA(const Row& row) {
        const Math number = x[row.number];
        const bool is_class = number >= Math(0) && number < static_cast<Math>(classes);
        const Size at = is_class ? static_cast<Size>(number) - own.begin : Size(-1);
        const T* const entry = at >= 0 && at < own.count ? table + at * width : nullptr;
        const T* const place = position && own.begin == 0
                                   ? position + positions.of(row.number % context) * width
                                   : nullptr;
        Y* const to = y + row.number * width;
        // Two loops: compilers do not vectorise a loop with choices inside.
        if (entry && place)
          return row.for_each(width, [=](Size j) { to[j] = Math(place[j]) + entry[j]; });
        row.for_each(width, [=](Size j) {
          const Math sum = (place ? Math(place[j]) : Math(0)) + (entry ? Math(entry[j]) : Math(0));
          to[j] = is_class ? sum : Kokkos::Experimental::quiet_NaN_v<Math>;
        });
      });
}

/// table[x[i]] += dy[i] for the rows of the call. Each team has a part of the table and a block of
/// columns, so that every sum adds the rows in order, for any number of threads. Blocks of columns
/// keep a core's part of the table in its cache; a GPU needs many teams.
template <class T>
void table_gradient(const LayerCall<T>& call) {
  using Math = StateOf<T>;
  const Size width = call.layer.out(), rows = static_cast<Size>(call.output_gradient.extent(0));
  const Range own = call.layer.part('v');
  const Size parts = on_host ? 1 : own.count, block = on_host ? 64 : width,
             blocks = (width + block - 1) / block;
  const Math* const x = call.batch.x.data();
  const T* const dy = call.output_gradient.data();
  Math* const table = call.parameter_gradients[0].data();
  const bool add = call.add_parameter_gradients;
  for_rows(
      "tessera::embedding_table_gradient"_label, parts * blocks, on_host ? rows * block : width,
      KOKKOS_LAMBDA(const Row& team) {
        const Range entries = balanced_split(own.count, parts, team.number / blocks);
        const Size begin = team.number % blocks * block;
        const Size count = begin + block < width ? block : width - begin;
        for (Size at = entries.begin; at < entries.end() && !add; ++at) {
          Math* const to = table + at * width + begin;
          team.for_each(count, [=](Size j) { to[j] = 0; });
        }
        const auto entry = [=](Size i) { return static_cast<Size>(x[i]) - own.begin; };
        const auto is_here = [=](Size i) {
          return entry(i) >= entries.begin && entry(i) < entries.end();
        };
        team.for_each_found(rows, is_here, [=](Size i) {
          Math* const to = table + entry(i) * width + begin;
          const T* const from = dy + i * width + begin;
          team.for_each(count, [=](Size j) { to[j] += from[j]; });
        });
      });
}

template <class T>
void position_gradient(const LayerCall<T>& call) {
  using Math = StateOf<T>;
  const Size width = call.layer.out(), samples = call.samples,
             elements = call.layer.positions() * width;
  const T* const dy = call.output_gradient.data();
  Math* const position = call.parameter_gradients[1].data();
  const bool add = call.add_parameter_gradients;
  const detail::OwnRuns positions(detail::share_of(call.layer, call.layer.positions()));
  for_each(
      "tessera::embedding_position_gradient"_label, call.layer.parameters[1].shape[0] * width,
      KOKKOS_LAMBDA(Size i) {
        Math sum = add ? position[i] : Math(-0.0);  // which changes no number
        const Size row = positions.row_of(i / width);
        for (Size s = 0; s < samples && row >= 0; ++s)
          sum += dy[s * elements + row * width + i % width];
        position[i] = sum;
      },
      samples * elements);
}

constexpr LayerKind embedding_kind{
    .name = "embedding",
    .expression = {.inputs = {{.indices = "sp,", .gradient = ""}},
                   .parameters = {{"v,c"}, {.indices = "p,c", .term = 1}},
                   .output = "sp,c",
                   .whole = "c"},
    .rules_choose = true,
    .reads_batch = true,
    .reads_inputs = always,
    .forward =
        [](const auto& call) { call.with_output([&](const auto& y) { look_up(call, y.data()); }); },
    .backward =
        [](const auto& call) {
          if (data_or_null(call.parameter_gradients[0])) table_gradient(call);
          if (data_or_null(call.parameter_gradients[1])) position_gradient(call);
        }};

}  // namespace

LayerSpec embedding(std::string name, std::string unit, Size vocabulary, Size context, Size width,
                    std::uint32_t stream, bool positions) {
  LayerSpec layer{&embedding_kind,
                  std::move(name),
                  std::move(unit),
                  {LayerSpec::data},
                  {{'v', vocabulary}, {'p', context}, {'c', width}}};
  layer.parameters = {{"table", {vocabulary, width}, {"vocab", "embed"}, Initial::drawn, stream}};
  if (positions)
    layer.parameters.push_back(
        {"position", {context, width}, {"", "embed"}, Initial::drawn, stream + 1});
  return layer;
}

}  // namespace tessera
