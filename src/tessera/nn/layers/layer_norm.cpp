// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <utility>

#include <tessera/base/for_each.hpp>
#include <tessera/nn/columns.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

// Made once: launches allocate no memory for labels.
const std::string layer_norm_forward_label = "tessera::layer_norm";
const std::string layer_norm_input_label = "tessera::layer_norm_input_gradient";
const std::string layer_norm_parameter_label = "tessera::layer_norm_parameter_gradients";

/// y = scale (x - mean) / deviation + bias, with a team per row. Keeps (mean, 1 / deviation).
template <class T>
struct Normalize {
  using Math = StateOf<T>;
  const T *x, *scale, *bias;
  T* y;
  Math* saved;
  Size size, cols;  ///< elements, and those of a row

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const Size i = team.league_rank();
    const T* const in = x + i * cols;
    T* const out = y + i * cols;
    const T *const s = scale, *const b = bias;
    const auto sum = [&](const auto& term) {
      return detail::reduce_lanes<Kokkos::Sum, Math>(team, cols, term);
    };
    const Math mean =
        sum([=](Size j) { return static_cast<Math>(in[j]); }) / static_cast<Math>(cols);
    const Math square = sum([=](Size j) { return (in[j] - mean) * (in[j] - mean); });
    using std::sqrt;
    const Math inverse =
        Math(1) / sqrt(square / static_cast<Math>(cols) + Math(layer_norm_epsilon));
    Math* const save = saved + 2 * i;
    Kokkos::single(Kokkos::PerTeam(team), [=]() {
      save[0] = mean;
      save[1] = inverse;
    });
    detail::for_each_lane(
        Kokkos::TeamVectorRange(team, cols), cols,
        [=](Size j) { out[j] = s[j] * ((in[j] - mean) * inverse) + b[j]; },
        detail::elements_ahead(size, cols, cols), in);
  }
};

/// dx = (g - mean(g) - n mean(g n)) / deviation with g = dy scale and n the normalized row.
template <class T>
struct InputGradient {
  using Math = StateOf<T>;
  const T *x, *scale;
  const Math* saved;
  const T* dy;
  T* dx;
  Size size, cols;  ///< elements, and those of a row
  bool add;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const Size i = team.league_rank();
    const T *const in = x + i * cols, *const d = dy + i * cols, *const s = scale;
    T* const out = dx + i * cols;
    const Math mean = saved[2 * i], inverse = saved[2 * i + 1];
    const auto average_of = [&](const auto& term) {
      return detail::reduce_lanes<Kokkos::Sum, Math>(team, cols, term) / static_cast<Math>(cols);
    };
    const Math average = average_of([=](Size j) { return static_cast<Math>(d[j]) * s[j]; });
    const Math along = average_of([=](Size j) { return d[j] * s[j] * (in[j] - mean) * inverse; });
    const bool adds = add;
    detail::for_each_lane(
        Kokkos::TeamVectorRange(team, cols), cols,
        [=](Size j) {
          const Math gradient =
              inverse * (d[j] * s[j] - average - (in[j] - mean) * inverse * along);
          out[j] = adds ? out[j] + gradient : gradient;
        },
        detail::elements_ahead(size, cols, cols), in, d);
  }
};

/// Terms of dscale = sum over rows of dy n, and of dbias = sum over rows of dy.
template <class T>
struct ParameterGradients {
  using Math = StateOf<T>;
  const T* x;
  const Math* saved;
  const T* dy;
  Size size, cols;  ///< elements, and those of a row

  template <class Thread>
  KOKKOS_INLINE_FUNCTION void operator()(const Thread& thread, Size i, Size first, Size width,
                                         Math* sums) const {
    const T *const in = x + i * cols + first, *const d = dy + i * cols + first;
    const Math mean = saved[2 * i], inverse = saved[2 * i + 1];
    detail::for_each_lane(
        Kokkos::ThreadVectorRange(thread, width), width,
        [=](Size j) {
          sums[j] += d[j] * (in[j] - mean) * inverse;
          sums[width + j] += d[j];
        },
        detail::elements_ahead(size, cols, width), in, d);
  }
};

template <class T>
void layer_norm_forward(const LayerCall<T>& call) {
  const Size rows = call.output.extent(0), cols = call.layer.in();
  for_each_row(
      layer_norm_forward_label, rows, cols,
      Normalize<T>{call.inputs[0].data(), call.parameters[0].data(), call.parameters[1].data(),
                   call.output.data(), call.saved.data(), rows * cols, cols});
}

template <class T>
void layer_norm_backward(const LayerCall<T>& call) {
  const Size rows = call.output_gradient.extent(0), cols = call.layer.in();
  const T* const x = call.inputs[0].data();
  const StateOf<T>* const saved = call.saved.data();
  const T* const dy = call.output_gradient.data();
  StateOf<T>* const sums[] = {call.parameter_gradients[0].data(),
                              call.parameter_gradients[1].data()};
  detail::for_each_with_column_sums(layer_norm_parameter_label, rows, cols, rows * cols,
                                    ParameterGradients<T>{x, saved, dy, rows * cols, cols}, sums,
                                    call.add_parameter_gradients);
  T* const dx = call.input_gradients[0].data();
  if (dx == nullptr) return;
  for_each_row(layer_norm_input_label, rows, cols,
               InputGradient<T>{x, call.parameters[0].data(), saved, dy, dx, rows * cols, cols,
                                call.add_input_gradients});
}

/// Each pass has two sums over a row.
PassCount layer_norm_functions(const LayerSpec& layer, Size samples) {
  const double sums = 2 * static_cast<double>(samples * layer.positions());
  return {functions_per_sum * sums, functions_per_sum * sums};
}

constexpr LayerRow layer_norm_row{.name = "layer_norm",
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
  LayerSpec layer{&layer_norm_row, std::move(name), std::move(unit), {input}, {{'c', width}}};
  layer.parameters = {{"scale", {width}, {logical_axis}, Initial::ones},
                      {"bias", {width}, {logical_axis}, Initial::zeros}};
  return layer;
}

}  // namespace tessera
