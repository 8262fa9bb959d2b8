// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <tessera/nn/layers/fourier_transform.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

using detail::FourierScale;
using detail::FourierTransform;

std::vector<Layout> fourier_layouts(const LayerSpec&) {
  constexpr Placement whole = Placement::replicate(), columns = Placement::shard(1);
  return {{{}, {whole}, whole, whole, {whole}, {}},
          {{}, {whole}, columns, columns, {Placement::partial()}, {}}};
}

detail::FourierModes output_modes(const LayerSpec& layer) {
  return detail::fourier_modes(layer, layer.out, layer.in);
}

template <class T>
void fourier_forward(const LayerCall<T>& call) {
  const FourierTransform<T> transform(call, output_modes(call.layer), FourierScale::mean);
  transform.to_modes(call.inputs[0], call.output);
}

template <class T>
void fourier_backward(const LayerCall<T>& call) {
  const FourierTransform<T> transform(call, output_modes(call.layer), FourierScale::mean);
  if (call.input_gradient_terms[0].data() != nullptr)
    transform.to_grid(call.output_gradient, call.input_gradient_terms[0]);
  else if (call.input_gradients[0].data() != nullptr)
    transform.to_grid(call.output_gradient, call.input_gradients[0]);
}

constexpr LayerRow fourier_row{
    .name = "fourier",
    .layouts = fourier_layouts,
    .fits = [](const LayerSpec& layer) { return detail::has_whole_groups(layer, layer.out); },
    .rules_choose = true,
    .mixes_positions = true,
    .products =
        [](const LayerSpec& layer, Size samples) {
          const detail::FourierModes of = output_modes(layer);
          return LayerProducts{of.products_to_modes(samples), of.products_to_grid(samples)};
        },
    .scratch = [](const LayerSpec& layer) { return output_modes(layer).scratch(); },
    .forward = [](const auto& call) { fourier_forward(call); },
    .backward = [](const auto& call) { fourier_backward(call); }};

}  // namespace

LayerSpec fourier(std::string name, std::string unit, Size input, const FourierGrid& grid) {
  LayerSpec layer{&fourier_row, std::move(name), std::move(unit),
                  {input},      grid.width,      grid.kept() * 2 * grid.width};
  layer.in_positions = grid.n * grid.n;
  layer.groups = detail::fourier_groups(grid);
  layer.settings = {grid.n, grid.modes};
  layer.columns = "modes";
  return layer;
}

}  // namespace tessera
