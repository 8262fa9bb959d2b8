// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/rows.hpp>

namespace tessera {
namespace {

/// y = scale (x - mean) / deviation + bias. Saves (mean, 1 / deviation) of each row.
template <class T>
void layer_norm_forward(const LayerCall<T>& call) {
  using Math = StateOf<T>;
  const Size rows = call.output.extent(0), cols = call.layer.in();
  const T *const x = call.inputs[0].data(), *const scale = call.parameters[0].data(),
                 *const bias = call.parameters[1].data();
  T* const y = call.output.data();
  Math* const saved = call.saved.data();
  for_rows(
      "tessera::layer_norm"_label, rows, cols, KOKKOS_LAMBDA(const Row& row) {
        using std::sqrt;
        const T* const in = x + row.number * cols;
        T* const out = y + row.number * cols;
        Math* const save = saved + 2 * row.number;
        const Math n = static_cast<Math>(cols);
        const Math mean = row.sum<Math>(cols, [=](Size j) { return static_cast<Math>(in[j]); }) / n;
        const Math square =
            row.sum<Math>(cols, [=](Size j) { return (in[j] - mean) * (in[j] - mean); });
        const Math inverse = Math(1) / sqrt(square / n + Math(layer_norm_epsilon));
        row.once([=]() { save[0] = mean, save[1] = inverse; });
        row.for_each(
            cols, [=](Size j) { out[j] = scale[j] * ((in[j] - mean) * inverse) + bias[j]; }, in);
      });
}

/// dx = (g - mean(g) - n mean(g n)) / deviation with g = dy scale and n the normalized row.
template <class T>
void layer_norm_input_gradient(const LayerCall<T>& call) {
  using Math = StateOf<T>;
  const Size rows = call.output_gradient.extent(0), cols = call.layer.in();
  const T *const x = call.inputs[0].data(), *const scale = call.parameters[0].data(),
                 *const dy = call.output_gradient.data();
  const Math* const saved = call.saved.data();
  T* const dx = call.input_gradients[0].data();
  const bool add = call.add_input_gradients;
  for_rows(
      "tessera::layer_norm_input_gradient"_label, rows, cols, KOKKOS_LAMBDA(const Row& row) {
        const Size at = row.number * cols;
        const T *const in = x + at, *const d = dy + at;
        T* const out = dx + at;
        const Math mean = saved[2 * row.number], inverse = saved[2 * row.number + 1],
                   n = static_cast<Math>(cols);
        const Math average =
            row.sum<Math>(cols, [=](Size j) { return static_cast<Math>(d[j]) * scale[j]; }) / n;
        const Math along = row.sum<Math>(cols, [=](Size j) {
          return d[j] * scale[j] * (in[j] - mean) * inverse;
        }) / n;
        row.for_each(
            cols,
            [=](Size j) {
              const Math gradient =
                  inverse * (d[j] * scale[j] - average - (in[j] - mean) * inverse * along);
              out[j] = add ? out[j] + gradient : gradient;
            },
            in, d);
      });
}

/// dscale = sum over rows of dy n, dbias = sum over rows of dy.
template <class T>
void layer_norm_parameter_gradients(const LayerCall<T>& call) {
  using Math = StateOf<T>;
  const Size rows = call.output_gradient.extent(0), cols = call.layer.in();
  const T *const x = call.inputs[0].data(), *const dy = call.output_gradient.data();
  const Math* const saved = call.saved.data();
  sum_columns<Math>(
      "tessera::layer_norm_parameter_gradients"_label, rows, cols, rows * cols,
      KOKKOS_LAMBDA(const RowPart& part, Math* sums) {
        const Size at = part.number * cols + part.first, width = part.width;
        const T *const in = x + at, *const d = dy + at;
        const Math mean = saved[2 * part.number], inverse = saved[2 * part.number + 1];
        part.for_each(
            [=](Size j) {
              sums[j] += d[j] * (in[j] - mean) * inverse;
              sums[width + j] += d[j];
            },
            in, d);
      },
      {call.parameter_gradients[0].data(), call.parameter_gradients[1].data()},
      call.add_parameter_gradients);
}

template <class T>
void layer_norm_backward(const LayerCall<T>& call) {
  layer_norm_parameter_gradients(call);
  if (call.wants_input_gradient(0)) layer_norm_input_gradient(call);
}

/// Each pass has two sums over a row.
LayerFunctions layer_norm_functions(const LayerSpec& layer) {
  const double sums = 2 * static_cast<double>(layer.positions());
  return {.row_sums = {sums, sums}};
}

constexpr LayerKind layer_norm_kind{
    .name = "layer_norm",
    .expression = {.inputs = {{"sp,c"}},
                   .parameters = {{"c"}, {"c"}},
                   .output = "sp,c",
                   .whole = "c"},
    .functions = layer_norm_functions,
    .reads_inputs = always,
    .saved_columns = [](const LayerSpec&) { return Size{2}; },
    .adds_gradient = true,
    .forward = [](const auto& call) { layer_norm_forward(call); },
    .backward = [](const auto& call) { layer_norm_backward(call); }};

}  // namespace

LayerSpec layer_norm(std::string name, std::string unit, Size input, Size width,
                     const std::string& logical_axis) {
  LayerSpec layer{&layer_norm_kind, std::move(name), std::move(unit), {input}, {{'c', width}}};
  layer.parameters = {{"scale", {width}, {logical_axis}, Initial::ones},
                      {"bias", {width}, {logical_axis}, Initial::zeros}};
  return layer;
}

}  // namespace tessera
