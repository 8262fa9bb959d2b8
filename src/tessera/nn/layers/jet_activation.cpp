// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <type_traits>
#include <utility>

#include <tessera/base/for_each.hpp>
#include <tessera/nn/activation_math.hpp>
#include <tessera/nn/columns.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

// Made once: launches allocate no memory for labels.
const std::string jet_forward_label = "tessera::jet_activation";
const std::string jet_backward_label = "tessera::jet_activation_backward";

constexpr Size first_row = 1, second_row = 1 + jet_dimensions;  // of the derivatives
constexpr Size boundary_row = jet_rows - 1;

/// The first three derivatives of an activation, from its value s.
template <Activation A, class Math>
struct Slopes {
  static constexpr bool curved = A == Activation::tanh;
  KOKKOS_INLINE_FUNCTION explicit Slopes(Math s)
      : first(curved ? Math(1) - s * s : Math(1)),
        second(curved ? Math(-2) * s * first : Math(0)),
        third(curved ? Math(-2) * (first * first + s * second) : Math(0)) {}
  Math first, second, third;
};

/// The forward pass of one sample, with a team per sample.
template <class T, Activation A>
struct JetActivation {
  using Math = StateOf<T>;
  const T *x, *bias;
  T* y;
  Size cols;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const Size n = cols;
    const T *const in = x + team.league_rank() * jet_rows * n, *const b = bias;
    T* const out = y + team.league_rank() * jet_rows * n;
    detail::for_each_lane(Kokkos::TeamVectorRange(team, n), n, [=](Size j) {
      const Math constant = b ? Math(b[j]) : Math(0);
      const Math s = detail::value_of<A>(in[j] + constant);
      const Slopes<A, Math> slopes(s);
      for (Size d = 0; d < jet_dimensions; ++d) {
        const Size i = j + (first_row + d) * n, ii = j + (second_row + d) * n;
        const Math first = in[i], second = in[ii];
        out[i] = slopes.first * first;
        out[ii] = slopes.second * first * first + slopes.first * second;
      }
      out[j] = s;
      out[j + boundary_row * n] = detail::value_of<A>(in[j + boundary_row * n] + constant);
    });
  }
};

/// The backward pass of one sample. With g = dy:
/// dx = g s' + sum over i of (g_i s'' x_i + g_ii (s''' x_i^2 + s'' x_ii)),
/// dx_i = g_i s' + 2 g_ii s'' x_i, dx_ii = g_ii s'. Adds dx of the two values to the sums for the
/// bias. `dx` is null if it is not wanted, as always for the identity (LayerRow::passes_gradient).
template <class T, Activation A>
struct JetGradient {
  using Math = StateOf<T>;
  const T *x, *y, *dy;
  T* dx;
  Size cols;

  template <class Thread>
  KOKKOS_INLINE_FUNCTION void operator()(const Thread& thread, Size sample, Size first_col,
                                         Size width, Math* sums) const {
    const Size n = cols, at = sample * jet_rows * n + first_col;
    const T *const in = x + at, *const value = y + at, *const g = dy + at;
    T* const out = dx ? dx + at : nullptr;
    detail::for_each_lane(Kokkos::ThreadVectorRange(thread, width), width, [=](Size j) {
      const Size boundary = j + boundary_row * n;
      Math du = g[j], dboundary = g[boundary];
      if constexpr (A != Activation::identity) {
        const Slopes<A, Math> slopes(value[j]);
        du *= slopes.first;
        for (Size d = 0; d < jet_dimensions; ++d) {
          const Size i = j + (first_row + d) * n, ii = j + (second_row + d) * n;
          const Math first = in[i], second = in[ii], g_first = g[i], g_second = g[ii];
          du += g_first * slopes.second * first +
                g_second * (slopes.third * first * first + slopes.second * second);
          if (!out) continue;
          out[i] = g_first * slopes.first + Math(2) * g_second * slopes.second * first;
          out[ii] = g_second * slopes.first;
        }
        dboundary *= Slopes<A, Math>(value[boundary]).first;
        if (out) out[j] = du, out[boundary] = dboundary;
      }
      sums[j] += du + dboundary;
    });
  }
};

/// Calls f with the activation as a std::integral_constant.
template <class F>
void with_jets_of(Activation a, const F& f) {
  if (a == Activation::tanh)
    f(std::integral_constant<Activation, Activation::tanh>());
  else
    f(std::integral_constant<Activation, Activation::identity>());
}

Activation jet_activation_of(const LayerSpec& layer) { return layer.get<Activation>(); }
bool is_curved(const LayerSpec& layer) { return jet_activation_of(layer) != Activation::identity; }

template <class T>
void jet_forward(const LayerCall<T>& call) {
  const Size cols = call.layer.out();
  with_jets_of(jet_activation_of(call.layer), [&](auto a) {
    for_each_row(
        jet_forward_label, call.samples, jet_rows * cols,
        JetActivation<T, decltype(a)::value>{
            call.inputs[0].data(), data_or_null(call.parameters[0]), call.output.data(), cols});
  });
}

template <class T>
void jet_backward(const LayerCall<T>& call) {
  const Size cols = call.layer.out();
  with_jets_of(jet_activation_of(call.layer), [&](auto a) {
    detail::for_each_with_column_sums(
        jet_backward_label, call.samples, cols, call.samples * jet_rows * cols,
        JetGradient<T, decltype(a)::value>{call.inputs[0].data(), call.output.data(),
                                           call.output_gradient.data(),
                                           call.input_gradients[0].data(), cols},
        {data_or_null(call.parameter_gradients[0])}, call.add_parameter_gradients);
  });
}

constexpr LayerRow jet_row{
    .name = "jet_activation",
    .expression = {.inputs = {{"sj,c"}}, .parameters = {{"c"}}, .output = "sj,c", .whole = "j"},
    .reads_inputs = is_curved,
    .reads_output = is_curved,
    .in_place_of = 0,
    .gradient_in_place = true,
    .passes_gradient = [](const LayerSpec& l) { return !is_curved(l); },
    .forward = [](const auto& call) { jet_forward(call); },
    .backward = [](const auto& call) { jet_backward(call); }};

}  // namespace

LayerSpec jet_activation(std::string name, std::string unit, Size input, Size width,
                         Activation activation, const std::optional<std::string>& bias_axis) {
  LayerSpec layer{
      &jet_row, std::move(name), std::move(unit), {input}, {{'j', jet_rows}, {'c', width}}};
  layer.settings = activation;
  if (bias_axis) layer.parameters.push_back({"bias", {width}, {*bias_axis}});
  return layer;
}

}  // namespace tessera
