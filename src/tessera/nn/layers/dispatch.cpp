// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <tessera/nn/layers/expert_slots.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

template <class T>
void dispatch_forward(const LayerCall<T>& call) {
  call.with_output([&](const auto& filled) {
    detail::fill_slots<T>("tessera::dispatch"_label, detail::slots_of(call), call.inputs[0],
                          nullptr, filled);
  });
}

/// A row of dx is the sum of dy over the slots of x.
template <class T>
void dispatch_backward(const LayerCall<T>& call) {
  call.with_input_gradient(0, [&](const auto& dx) {
    detail::sum_slots<T>("tessera::dispatch_backward"_label, detail::slots_of(call),
                         call.output_gradient, nullptr, dx);
  });
}

constexpr LayerKind dispatch_kind{
    .name = "dispatch",
    .expression = {.inputs = {{"sp,c"}, {.indices = "st,f", .gradient = ""}},
                   .output = "sk,ec",
                   .whole = "tkf"},
    .rules_choose = true,
    .functions =
        [](const LayerSpec& layer) {
          return detail::slots_functions(layer, {2, 5});
        },
    .scratch = detail::slots_scratch,
    .sums_in_blocks = true,
    .reads_inputs = always,
    .forward = [](const auto& call) { dispatch_forward(call); },
    .backward = [](const auto& call) { dispatch_backward(call); }};

}  // namespace

LayerSpec dispatch(std::string name, std::string unit, Size x, Size gates, Size width,
                   Size positions, const Routing& routing) {
  LayerSpec layer{&dispatch_kind,
                  std::move(name),
                  std::move(unit),
                  {x, gates},
                  detail::slot_sizes(width, positions, routing)};
  layer.groups = {"experts", "model.transformer.experts", routing.experts};
  return layer;
}

}  // namespace tessera
