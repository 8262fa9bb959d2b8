// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <tessera/nn/activation_math.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/rows.hpp>

namespace tessera {
namespace {

template <Activation A, class T>
void gate(Size rows, Size cols, const T* x, T* y) {
  for_rows(
      "tessera::gated"_label, rows, cols, KOKKOS_LAMBDA(const Row& row) {
        using Math = StateOf<T>;
        const T* const in = x + row.number * 2 * cols;
        T* const out = y + row.number * cols;
        row.for_each(
            cols, [=](Size j) { out[j] = detail::value_of<A>(Math(in[2 * j])) * in[2 * j + 1]; });
      });
}

/// da = dy b activation'(a), db = dy activation(a).
template <Activation A, class T>
void gate_backward(Size rows, Size cols, const T* x, const T* dy, T* dx) {
  constexpr bool of_z = needs_preactivation(A);
  for_rows(
      "tessera::gated_backward"_label, rows, 2 * cols, KOKKOS_LAMBDA(const Row& row) {
        using Math = StateOf<T>;
        const T *const in = x + row.number * 2 * cols, *const d = dy + row.number * cols;
        T* const out = dx + row.number * 2 * cols;
        row.for_each(cols, [=](Size j) {
          const Math a = in[2 * j], b = in[2 * j + 1], value = detail::value_of<A>(a);
          out[2 * j] = d[j] * b * detail::slope_of<A>(of_z ? a : value);
          out[2 * j + 1] = d[j] * value;
        });
      });
}

template <class T>
void gated_forward(const LayerCall<T>& call) {
  const Size rows = call.output.extent(0), cols = call.output.extent(1);
  detail::with_activation(call.layer.template get<Activation>(), [&](auto a) {
    gate<decltype(a)::value>(rows, cols, call.inputs[0].data(), call.output.data());
  });
}

template <class T>
void gated_backward(const LayerCall<T>& call) {
  const Size rows = call.output_gradient.extent(0), cols = call.output_gradient.extent(1);
  detail::with_activation(call.layer.template get<Activation>(), [&](auto a) {
    gate_backward<decltype(a)::value>(rows, cols, call.inputs[0].data(),
                                      call.output_gradient.data(), call.input_gradients[0].data());
  });
}

constexpr LayerKind gated_kind_of(const Expression& expression) {
  return {.name = "gated",
          .expression = expression,
          .functions =
              [](const LayerSpec& layer) {
                const auto elements = static_cast<double>(layer.positions() * layer.out());
                return LayerFunctions{.exponentials = {elements, elements}};
              },
          .reads_inputs = always,
          .forward = [](const auto& call) { gated_forward(call); },
          .backward = [](const auto& call) { gated_backward(call); }};
}

constexpr LayerKind gated_kind = gated_kind_of(
    {.inputs = {{.indices = "sp,cg"}}, .parameters = {}, .output = "sp,c", .whole = "g"});
constexpr LayerKind grouped_gated_kind = gated_kind_of(
    {.inputs = {{.indices = "sk,ecg"}}, .parameters = {}, .output = "sk,ec", .whole = "g"});

}  // namespace

LayerSpec gated(std::string name, std::string unit, Size input, Size width, Activation activation,
                Size experts) {
  LayerSpec layer{experts > 0 ? &grouped_gated_kind : &gated_kind,
                  std::move(name),
                  std::move(unit),
                  {input},
                  {{'c', width / std::max<Size>(1, experts)}, {'g', 2}}};
  if (experts > 0) layer.sizes.emplace('e', experts);
  layer.settings = activation;
  return layer;
}

}  // namespace tessera
