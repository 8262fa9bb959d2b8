// SPDX-License-Identifier: Apache-2.0
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/rows.hpp>

namespace tessera {
namespace {

/// Copies the keys and values (rows, 2 heads d) out of q, k and v, or their gradients back.
template <class T>
void copy_keys_values(const Matrix<const T>& from, const Matrix<T>& to, Size d, bool back,
                      bool adds) {
  const T* const in = from.data();
  T* const out = to.data();
  for_each(
      "tessera::keys_values"_label, static_cast<Size>(to.size()), KOKKOS_LAMBDA(Size i) {
        if (!back) {
          out[i] = in[i / (2 * d) * (3 * d) + d + i % (2 * d)];
          return;
        }
        const Size at = i % (3 * d) - d;
        const StateOf<T> old = adds ? StateOf<T>(out[i]) : 0;
        out[i] = at < 0 ? old : old + static_cast<StateOf<T>>(in[i / (3 * d) * (2 * d) + at]);
      });
}

constexpr LayerKind keys_values_kind{
    .name = "keys_values",
    .expression = {.inputs = {{"sp,hnd"}}, .output = "sp,hrd", .whole = "n"},
    .adds_gradient = true,
    .forward =
        [](const auto& call) {
          copy_keys_values(call.inputs[0], call.output, call.layer.size("d"), false, false);
        },
    .backward =
        [](const auto& call) {
          copy_keys_values(call.output_gradient, call.input_gradients[0], call.layer.size("d"),
                           true, call.add_input_gradients);
        }};

}  // namespace

LayerSpec keys_values(const LayerSpec& attention) {
  LayerSpec layer{&keys_values_kind, attention.name + "/keys_values", attention.unit,
                  attention.inputs, attention.sizes};
  layer.groups = attention.groups;
  return layer;
}

}  // namespace tessera
