// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <tessera/nn/layers/fourier_transform.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

detail::FourierModes input_modes(const LayerSpec& layer) {
  return {layer, layer.in_begin, layer.in};
}

template <class T>
detail::FourierTransform<T> inverse_transform(const LayerCall<T>& call) {
  return {call, input_modes(call.layer), detail::FourierScale::mirror, call.blocks.in};
}

template <class T>
void inverse_fourier_forward(const LayerCall<T>& call) {
  call.with_output([&](const auto& y) { inverse_transform(call).to_grid(call.inputs[0], y); });
}

constexpr LayerRow inverse_fourier_row{
    .name = "inverse_fourier",
    .expression = {.inputs = {{"s,mrc"}}, .output = "sp,c"},
    .products =
        [](const LayerSpec& layer, Size samples) {
          const detail::FourierModes of = input_modes(layer);
          return LayerProducts{of.products_to_grid(samples), of.products_to_modes(samples)};
        },
    .scratch = [](const LayerSpec& layer,
                  Size samples) { return input_modes(layer).scratch(samples); },
    .sums_in_blocks = true,
    .forward = [](const auto& call) { inverse_fourier_forward(call); },
    .backward =
        [](const auto& call) {
          call.with_input_gradient(0, [&](const auto& dx) {
            inverse_transform(call).to_modes(call.output_gradient, dx);
          });
        }};

}  // namespace

LayerSpec inverse_fourier(std::string name, std::string unit, Size input, const FourierGrid& grid) {
  LayerSpec layer{&inverse_fourier_row,
                  std::move(name),
                  std::move(unit),
                  {input},
                  grid.num_modes() * 2 * grid.width,
                  grid.width};
  layer.positions = grid.n * grid.n;
  layer.groups = detail::fourier_groups(grid);
  layer.grid = grid;
  return layer;
}

}  // namespace tessera
