// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <tessera/nn/layers/fourier_transform.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

using detail::FourierScale;
using detail::FourierTransform;

detail::FourierModes output_modes(const LayerSpec& layer) {
  return {layer, layer.out_begin, layer.out};
}

template <class T>
void fourier_forward(const LayerCall<T>& call) {
  const FourierTransform<T> transform(call, output_modes(call.layer), FourierScale::mean,
                                      call.blocks.out);
  call.with_output([&](const auto& y) { transform.to_modes(call.inputs[0], y); });
}

template <class T>
void fourier_backward(const LayerCall<T>& call) {
  const FourierTransform<T> transform(call, output_modes(call.layer), FourierScale::mean,
                                      call.blocks.out);
  call.with_input_gradient(0, [&](const auto& dx) { transform.to_grid(call.output_gradient, dx); });
}

constexpr LayerRow fourier_row{
    .name = "fourier",
    .expression = {.inputs = {{"sp,c"}}, .output = "s,mrc"},
    .rules_choose = true,
    .products =
        [](const LayerSpec& layer, Size samples) {
          const detail::FourierModes of = output_modes(layer);
          return LayerProducts{of.products_to_modes(samples), of.products_to_grid(samples)};
        },
    .scratch = [](const LayerSpec& layer,
                  Size samples) { return output_modes(layer).scratch(samples); },
    .sums_in_blocks = true,
    .forward = [](const auto& call) { fourier_forward(call); },
    .backward = [](const auto& call) { fourier_backward(call); }};

}  // namespace

LayerSpec fourier(std::string name, std::string unit, Size input, const FourierGrid& grid) {
  LayerSpec layer{&fourier_row, std::move(name), std::move(unit),
                  {input},      grid.width,      grid.num_modes() * 2 * grid.width};
  layer.in_positions = grid.n * grid.n;
  layer.groups = detail::fourier_groups(grid);
  layer.grid = grid;
  return layer;
}

}  // namespace tessera
