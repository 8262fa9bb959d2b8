// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include <tessera/base/for_each.hpp>
#include <tessera/nn/add.hpp>
#include <tessera/nn/layer_call.hpp>

namespace tessera {
namespace {

const std::string label = "tessera::add";  // made once: a launch then needs no memory for it

std::vector<Layout> layouts(const LayerSpec&) {
  std::vector<Layout> all;
  for (const Placement p : {Placement::replicate(), Placement::shard(1), Placement::shard(0)})
    all.push_back({{}, {p, p}, p, p, {p, p}, {}});
  return all;
}

/// y may be b.
template <class T>
void forward(const LayerCall<T>& call) {
  const T *const a = call.inputs[0].data(), *const b = call.inputs[1].data();
  T* const y = call.output.data();
  for_each(
      label, call.output.extent(0) * call.output.extent(1),
      KOKKOS_LAMBDA(Size i) { y[i] = a[i] + b[i]; });
}

/// Both gradients are that of the sum.
template <class T>
void backward(const LayerCall<T>&) {}

constexpr LayerRow row{.name = "add",
                       .layouts = layouts,
                       .in_place_of = 1,
                       .gradient_in_place = true,
                       .passes_gradient = always,
                       .forward = {forward, forward},
                       .backward = {backward, backward}};

}  // namespace

LayerSpec add(std::string name, std::string unit, Size a, Size b, Size width) {
  return {&row, std::move(name), std::move(unit), {a, b}, width, width};
}

}  // namespace tessera
