// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <tessera/nn/activation_math.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/rows.hpp>

namespace tessera {
namespace {

/// y = activation(x + bias), row by row, so that vector lanes read contiguous columns.
template <Activation A, class T>
void activate(Size rows, Size cols, const T* x, const T* bias, T* y) {
  for_rows(
      "tessera::bias_activation"_label, rows, cols, KOKKOS_LAMBDA(const Row& row) {
        const T* const in = x + row.number * cols;
        T* const out = y + row.number * cols;
        // Two loops: compilers do not vectorise a loop with this choice inside.
        if (bias)
          row.for_each(
              cols, [=](Size j) { out[j] = detail::value_of<A>(StateOf<T>(in[j]) + bias[j]); }, in);
        else
          row.for_each(
              cols, [=](Size j) { out[j] = detail::value_of<A>(StateOf<T>(in[j])); }, in);
      });
}

/// dx = dy activation'(x + bias); adds the sums of dx to those for the bias. `saved` is y, or x if
/// needs_preactivation(). `dx` is null if it is not wanted, as always for the identity
/// (LayerKind::passes_gradient).
template <Activation A, class T>
void activate_backward(Size rows, Size cols, const T* saved, const T* bias, const T* dy, T* dx,
                       StateOf<T>* dbias, bool add) {
  using Math = StateOf<T>;
  constexpr bool of_sum = needs_preactivation(A);
  sum_columns<Math>(
      "tessera::bias_activation_backward"_label, rows, cols, rows * cols,
      KOKKOS_LAMBDA(const RowPart& part, Math* sums) {
        const Size at = part.number * cols + part.first;
        const T *const s = saved + at, *const d = dy + at;
        const T* const b = of_sum && bias ? bias + part.first : nullptr;
        T* const out = dx ? dx + at : nullptr;
        // One loop for each case: compilers do not vectorise a loop with choices inside.
        const auto element = [=](Size j, Math from) {
          const Math dz = d[j] * detail::slope_of<A>(from);
          out[j] = dz;
          sums[j] += dz;
        };
        const auto sum_only = [=](Size j) {
          if constexpr (A == Activation::identity)  // it saves nothing, and its slope is 1
            sums[j] += d[j];
          else
            sums[j] += d[j] * detail::slope_of<A>(b ? Math(s[j]) + b[j] : Math(s[j]));
        };
        if (!out)
          part.for_each(sum_only, d);
        else if (b)
          part.for_each([=](Size j) { element(j, Math(s[j]) + b[j]); }, s, d);
        else
          part.for_each([=](Size j) { element(j, Math(s[j])); }, s, d);
      },
      {dbias}, add);
}

Activation pointwise_activation(const LayerSpec& layer) { return layer.get<Activation>(); }

bool keeps_input(const LayerSpec& layer) {
  return needs_preactivation(pointwise_activation(layer));
}

template <class T>
void pointwise_forward(const LayerCall<T>& call) {
  const Matrix<const T>& x = call.inputs[0];
  const Size rows = call.output.extent(0), cols = call.output.extent(1);
  const T* const bias = data_or_null(call.parameters[0]);
  const Activation activation = pointwise_activation(call.layer);
  const bool is_copy_in_place =
      activation == Activation::identity && !bias && x.data() == call.output.data();
  if (rows == 0 || cols == 0 || is_copy_in_place) return;
  detail::with_activation(activation, [&](auto a) {
    activate<decltype(a)::value>(rows, cols, x.data(), bias, call.output.data());
  });
}

/// If there are no rows, the gradient of the bias becomes zero, or stays if gradients are added.
template <class T>
void pointwise_backward(const LayerCall<T>& call) {
  const Activation activation = pointwise_activation(call.layer);
  const Size rows = call.output_gradient.extent(0), cols = call.output_gradient.extent(1);
  StateOf<T>* const dbias = data_or_null(call.parameter_gradients[0]);
  if (cols == 0 || (!dbias && activation == Activation::identity)) return;
  const Matrix<const T> saved =
      needs_preactivation(activation) ? call.inputs[0] : Matrix<const T>(call.output);
  detail::with_activation(activation, [&](auto a) {
    constexpr Activation of = decltype(a)::value;
    activate_backward<of>(rows, cols, saved.data(), data_or_null(call.parameters[0]),
                          call.output_gradient.data(),
                          of == Activation::identity ? nullptr : call.input_gradients[0].data(),
                          dbias, call.add_parameter_gradients);
  });
}

/// Backward has the slope of tanh and sigmoid from their values. Those of gelu and silu take longer
/// than their values.
LayerFunctions pointwise_functions(const LayerSpec& layer) {
  constexpr double of_slope = 1.4;  // measured
  const bool has_function = pointwise_activation(layer) != Activation::identity &&
                            pointwise_activation(layer) != Activation::relu;
  const auto elements = static_cast<double>(layer.positions() * layer.out());
  return {
      .exponentials = {has_function ? elements : 0, keeps_input(layer) ? of_slope * elements : 0}};
}

constexpr LayerKind pointwise_kind_of(const Expression& expression) {
  return {.name = "pointwise",
          .expression = expression,
          .functions = pointwise_functions,
          .reads_inputs = keeps_input,
          .reads_output =
              [](const LayerSpec& l) {
                return pointwise_activation(l) != Activation::identity && !keeps_input(l);
              },
          .in_place_of = 0,
          .gradient_in_place = true,
          .passes_gradient =
              [](const LayerSpec& l) { return pointwise_activation(l) == Activation::identity; },
          .forward = [](const auto& call) { pointwise_forward(call); },
          .backward = [](const auto& call) { pointwise_backward(call); }};
}

constexpr LayerKind pointwise_kind =
    pointwise_kind_of({.inputs = {{"sp,cg"}}, .parameters = {{"cg"}}, .output = "sp,cg"});

constexpr LayerKind grouped_pointwise_kind =
    pointwise_kind_of({.inputs = {{"sk,ecg"}}, .parameters = {{"ecg"}}, .output = "sk,ecg"});

}  // namespace

LayerSpec pointwise(std::string name, std::string unit, Size input, Size width,
                    Activation activation, const std::optional<std::string>& bias_axis,
                    Size experts, Size gates) {
  LayerSpec layer{experts > 0 ? &grouped_pointwise_kind : &pointwise_kind,
                  std::move(name),
                  std::move(unit),
                  {input},
                  {{'c', width / std::max<Size>(1, experts) / gates}}};
  if (experts > 0) layer.sizes.emplace('e', experts);
  if (gates > 1) layer.sizes.emplace('g', gates);
  layer.settings = activation;
  if (bias_axis) layer.parameters.push_back({"bias", {width}, {*bias_axis}});
  return layer;
}

}  // namespace tessera
