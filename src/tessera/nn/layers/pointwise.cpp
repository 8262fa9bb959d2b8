// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/nn/activation_math.hpp>
#include <tessera/nn/columns.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

// Made once: launches allocate no memory for labels.
const std::string pointwise_forward_label = "tessera::bias_activation";
const std::string pointwise_backward_label = "tessera::bias_activation_backward";

/// y = activation(x + bias), with a team per row, so that vector lanes read contiguous columns.
template <class T, Activation A>
struct BiasActivation {
  const T* x;
  const T* bias;
  T* y;
  Size size, cols;  ///< elements, and those of a row

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const T* const x_row = x + team.league_rank() * cols;
    T* const y_row = y + team.league_rank() * cols;
    const T* const b = bias;
    const auto range = Kokkos::TeamVectorRange(team, cols);
    const Size ahead = detail::elements_ahead(size, cols, cols);
    // Two loops: compilers do not vectorise a loop with this choice inside.
    if (b)
      detail::for_each_lane(
          range, cols, [=](Size j) { y_row[j] = detail::value_of<A>(StateOf<T>(x_row[j]) + b[j]); },
          ahead, x_row);
    else
      detail::for_each_lane(
          range, cols, [=](Size j) { y_row[j] = detail::value_of<A>(StateOf<T>(x_row[j])); }, ahead,
          x_row);
  }
};

/// dx = dy activation'(x + bias) of one row, which also adds dx to the sums for the bias. `saved`
/// is y, or x if needs_preactivation(). `dx` is null if it is not wanted, as always for the
/// identity (LayerRow::passes_gradient).
template <class T, Activation A>
struct BiasActivationBackward {
  using Math = StateOf<T>;
  const T *saved, *bias, *dy;
  T* dx;
  Size size, cols;                                        ///< elements, and those of a row
  static constexpr bool of_sum = needs_preactivation(A);  // a host function, hence a constant

  template <class Thread>
  KOKKOS_INLINE_FUNCTION void operator()(const Thread& thread, Size i, Size first, Size width,
                                         Math* sums) const {
    const T *const s = saved + i * cols + first, *const d = dy + i * cols + first;
    const T* const b = of_sum && bias ? bias + first : nullptr;
    const Size ahead = detail::elements_ahead(size, cols, width);
    T* const out = dx ? dx + i * cols + first : nullptr;
    const auto range = Kokkos::ThreadVectorRange(thread, width);
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
      detail::for_each_lane(range, width, sum_only, ahead, d);
    else if (b)
      detail::for_each_lane(
          range, width, [=](Size j) { element(j, Math(s[j]) + b[j]); }, ahead, s, d);
    else
      detail::for_each_lane(
          range, width, [=](Size j) { element(j, Math(s[j])); }, ahead, s, d);
  }
};

/// Calls f with the activation as a std::integral_constant.
template <class F>
void dispatch(Activation a, const F& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((a == Activation(I) ? f(std::integral_constant<Activation, Activation(I)>()) : void()), ...);
  }
  (std::make_index_sequence<names_of<Activation>.size()>());
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
  dispatch(activation, [&](auto a) {
    for_each_row(pointwise_forward_label, rows, cols,
                 BiasActivation<T, decltype(a)::value>{x.data(), bias, call.output.data(),
                                                       rows * cols, cols});
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
  dispatch(activation, [&](auto a) {
    detail::for_each_with_column_sums(
        pointwise_backward_label, rows, cols, rows * cols,
        BiasActivationBackward<T, decltype(a)::value>{
            saved.data(), data_or_null(call.parameters[0]), call.output_gradient.data(),
            decltype(a)::value == Activation::identity ? nullptr : call.input_gradients[0].data(),
            rows * cols, cols},
        {dbias}, call.add_parameter_gradients);
  });
}

/// Backward has the slope of tanh and sigmoid from their values.
PassCount pointwise_functions(const LayerSpec& layer, Size samples) {
  const bool has_function = pointwise_activation(layer) != Activation::identity &&
                            pointwise_activation(layer) != Activation::relu;
  const auto elements = static_cast<double>(samples * layer.positions() * layer.out());
  return {has_function ? elements : 0, keeps_input(layer) ? elements : 0};
}

constexpr LayerRow pointwise_row_of(const Expression& expression) {
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

constexpr LayerRow pointwise_row =
    pointwise_row_of({.inputs = {{"sp,c"}}, .parameters = {{"c"}}, .output = "sp,c"});

constexpr LayerRow grouped_pointwise_row =
    pointwise_row_of({.inputs = {{"sk,ec"}}, .parameters = {{"ec"}}, .output = "sk,ec"});

}  // namespace

LayerSpec pointwise(std::string name, std::string unit, Size input, Size width,
                    Activation activation, const std::optional<std::string>& bias_axis,
                    Size experts) {
  LayerSpec layer{experts > 0 ? &grouped_pointwise_row : &pointwise_row,
                  std::move(name),
                  std::move(unit),
                  {input},
                  {{'c', width / std::max<Size>(1, experts)}}};
  if (experts > 0) layer.sizes.emplace('e', experts);
  layer.settings = activation;
  if (bias_axis) layer.parameters.push_back({"bias", {width}, {*bias_axis}});
  return layer;
}

}  // namespace tessera
