// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/rows.hpp>

namespace tessera {
namespace {

/// y may alias b.
template <class T>
void add_forward(const LayerCall<T>& call) {
  const T *const a = call.inputs[0].data(), *const b = call.inputs[1].data();
  T* const y = call.output.data();
  for_each(
      "tessera::add"_label, call.output.extent(0) * call.output.extent(1),
      KOKKOS_LAMBDA(Size i) { y[i] = static_cast<StateOf<T>>(a[i]) + b[i]; });
}

constexpr LayerKind add_kind{.name = "add",
                             .expression = {.inputs = {{"sp,c"}, {"sp,c"}}, .output = "sp,c"},
                             .in_place_of = 1,
                             .gradient_in_place = true,
                             .passes_gradient = always,
                             .forward = [](const auto& call) { add_forward(call); },
                             .backward = [](const auto&) {}};  // passes_gradient

}  // namespace

LayerSpec add(std::string name, std::string unit, Size a, Size b, Size width) {
  return {&add_kind, std::move(name), std::move(unit), {a, b}, {{'c', width}}};
}

}  // namespace tessera
