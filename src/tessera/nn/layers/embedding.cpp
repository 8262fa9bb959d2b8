// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include <tessera/base/for_each.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

// Made once: launches allocate no memory for labels.
const std::string embedding_forward_label = "tessera::embedding";
const std::string embedding_table_label = "tessera::embedding_table_gradient";
const std::string embedding_position_label = "tessera::embedding_position_gradient";

/// Ranks have rows of the table.
std::vector<Layout> embedding_layouts() {
  return {{.parameters = {by_rows}, .output = as_terms, .parameter_gradients = {by_rows}}};
}

Layout embedding_along_context(const LayerSpec&, ContextAttention) { return alike(by_rows); }

bool tables_fit(const LayerSpec& layer) {
  const Size positions = layer.share.ways > 1 ? layer.share.total : layer.positions;
  return layer.parameters[0].shape[1] == layer.out &&
         layer.parameters[1].shape == Shape{positions, layer.out};
}

/// The positions of the rows of a sample: two runs.
struct RowPositions {
  Range first, second;

  explicit RowPositions(const LayerSpec& layer)
      : first(layer.share.ways > 1 ? layer.share.run(layer.share.part, 0)
                                   : Range{0, layer.positions}),
        second(layer.share.ways > 1 ? layer.share.run(layer.share.part, 1) : Range{}) {}

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

/// y = table[x] + position; a rank adds the rows of the table that it has. The rank with row 0 adds
/// the positions.
template <class T, class Y>
void look_up(const LayerCall<T>& call, Y* y) {
  using Math = StateOf<T>;
  const Math* const x = call.batch.x.data();
  const T *const table = call.parameters[0].data(), *const position = call.parameters[1].data();
  const ParameterSpec& own_table = call.layer.parameters[0];
  const Size width = call.layer.out, context = call.layer.positions, first = own_table.begin;
  const Size own = own_table.shape[0], classes = call.layer.classes;
  const RowPositions positions(call.layer);
  for_each(
      embedding_forward_label, call.samples * context * width, KOKKOS_LAMBDA(Size i) {
        const Size row = i / width, j = i % width;
        const Math number = x[row];
        const Size at = static_cast<Size>(number) - first;
        Math sum = first == 0 ? Math(position[positions.of(row % context) * width + j]) : Math(0);
        if (at >= 0 && at < own) sum += table[at * width + j];
        const bool is_class = number >= Math(0) && number < static_cast<Math>(classes);
        y[i] = is_class ? sum : Kokkos::Experimental::quiet_NaN_v<Math>;
      });
}

/// table[x[i]] += dy[i]. An index is a block of columns, so that every sum adds the rows in order,
/// for any number of threads.
template <class T>
struct TableGradient {
  using Math = StateOf<T>;
  const Math* x;
  const T* dy;
  Math* table;
  Size rows, width, block, first, own;
  bool add;

  KOKKOS_INLINE_FUNCTION void operator()(Size b) const {
    const Size begin = b * block, end = begin + block < width ? begin + block : width;
    for (Size at = 0; at < own && !add; ++at)
      for (Size j = begin; j < end; ++j) table[at * width + j] = 0;
    for (Size i = 0; i < rows; ++i) {
      const Size at = static_cast<Size>(x[i]) - first;
      if (at < 0 || at >= own) continue;
      for (Size j = begin; j < end; ++j) table[at * width + j] += dy[i * width + j];
    }
  }
};

template <class T>
void embedding_backward(const LayerCall<T>& call) {
  using Math = StateOf<T>;
  const Size width = call.layer.out, context = call.layer.positions, samples = call.samples;
  const Size block = on_host ? 64 : 1;
  const T* const dy = call.output_gradient.data();
  for_each(embedding_table_label, (width + block - 1) / block,
           TableGradient<T>{call.batch.x.data(), dy, call.parameter_gradients[0].data(),
                            samples * context, width, block, call.layer.parameters[0].begin,
                            call.layer.parameters[0].shape[0], call.add_parameter_gradients},
           samples * context * width);
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
    .split_layouts = embedding_layouts,
    .fits = tables_fit,
    .rules_choose = true,
    .mixes_positions = true,
    .along_context = embedding_along_context,
    .reads_batch = true,
    .reads_exact_x = true,
    .reads_inputs = always,
    .forward =
        [](const auto& call) { call.with_output([&](const auto& y) { look_up(call, y.data()); }); },
    .backward = [](const auto& call) { embedding_backward(call); }};

}  // namespace

LayerSpec embedding(std::string name, std::string unit, Size vocabulary, Size context, Size width,
                    std::uint32_t stream) {
  LayerSpec layer{&embedding_row, std::move(name), std::move(unit), {LayerSpec::data}, 1, width};
  layer.parameters = {{"table", {vocabulary, width}, {"vocab", "embed"}, Initial::drawn, stream},
                      {"position", {context, width}, {"", "embed"}, Initial::drawn, stream + 1}};
  layer.in_positions = layer.positions = context;
  layer.classes = vocabulary;
  return layer;
}

}  // namespace tessera
