// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <tessera/nn/activation_math.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/rows.hpp>

namespace tessera {
namespace {

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

template <Activation A, class T>
void activate_jets(const LayerCall<T>& call) {
  using Math = StateOf<T>;
  const Size n = call.layer.out();
  const T *const x = call.inputs[0].data(), *const bias = data_or_null(call.parameters[0]);
  T* const y = call.output.data();
  for_rows(
      "tessera::jet_activation"_label, call.samples, jet_rows * n,
      KOKKOS_LAMBDA(const Row& sample) {
        const T* const in = x + sample.number * jet_rows * n;
        T* const out = y + sample.number * jet_rows * n;
        sample.for_each(n, [=](Size j) {
          const Math constant = bias ? Math(bias[j]) : Math(0);
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
      });
}

/// With g = dy: dx = g s' + sum over i of (g_i s'' x_i + g_ii (s''' x_i^2 + s'' x_ii)),
/// dx_i = g_i s' + 2 g_ii s'' x_i, dx_ii = g_ii s'. Adds dx of the two values to the sums for the
/// bias. dx is not written for the identity (LayerKind::passes_gradient).
template <Activation A, class T>
void jet_gradients(const LayerCall<T>& call) {
  using Math = StateOf<T>;
  const Size n = call.layer.out();
  const T *const x = call.inputs[0].data(), *const y = call.output.data(),
                 *const dy = call.output_gradient.data();
  T* const dx = call.input_gradients[0].data();
  sum_columns<Math>(
      "tessera::jet_activation_backward"_label, call.samples, n, call.samples * jet_rows * n,
      KOKKOS_LAMBDA(const RowPart& part, Math* sums) {
        const Size at = part.number * jet_rows * n + part.first;
        const T *const in = x + at, *const value = y + at, *const g = dy + at;
        T* const out = dx ? dx + at : nullptr;
        part.for_each([=](Size j) {
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
      },
      {data_or_null(call.parameter_gradients[0])}, call.add_parameter_gradients);
}

bool is_curved(const LayerSpec& layer) { return layer.get<Activation>() == Activation::tanh; }

template <class T>
void jet_forward(const LayerCall<T>& call) {
  is_curved(call.layer) ? activate_jets<Activation::tanh>(call)
                        : activate_jets<Activation::identity>(call);
}

template <class T>
void jet_backward(const LayerCall<T>& call) {
  is_curved(call.layer) ? jet_gradients<Activation::tanh>(call)
                        : jet_gradients<Activation::identity>(call);
}

constexpr LayerKind jet_kind{
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
      &jet_kind, std::move(name), std::move(unit), {input}, {{'j', jet_rows}, {'c', width}}};
  layer.settings = activation;
  if (bias_axis) layer.parameters.push_back({"bias", {width}, {*bias_axis}});
  return layer;
}

}  // namespace tessera
