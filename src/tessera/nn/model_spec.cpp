// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <tessera/nn/layer_row.hpp>
#include <tessera/nn/model_spec.hpp>

namespace tessera {
namespace {

bool reads_a_layer(const LayerSpec& layer) {
  return std::any_of(layer.inputs.begin(), layer.inputs.end(),
                     [](Size input) { return input != LayerSpec::data; });
}

Size sum(const std::vector<GemmShape>& products) {
  Size flops = 0;
  for (const GemmShape& product : products) flops += product.flops();
  return flops;
}

std::vector<GemmShape> forward_products(const LayerSpec& layer, Size rows) {
  const LayerRow& row = row_of(layer);
  return row.forward_products ? row.forward_products(layer, rows) : std::vector<GemmShape>{};
}

std::vector<GemmShape> backward_products(const LayerSpec& layer, Size rows) {
  const LayerRow& row = row_of(layer);
  return row.backward_products ? row.backward_products(layer, rows, reads_a_layer(layer))
                               : std::vector<GemmShape>{};
}

}  // namespace

Size ModelSpec::num_parameters() const {
  Size sum = 0;
  for (const LayerSpec& layer : layers) sum += layer.num_parameters();
  return sum;
}

Size ModelSpec::append(LayerSpec layer) {
  layers.push_back(std::move(layer));
  return static_cast<Size>(layers.size()) - 1;
}

FlopCount count_flops(const std::vector<LayerSpec>& layers, Size rows) {
  FlopCount count;
  for (const LayerSpec& layer : layers) {
    count.forward += sum(forward_products(layer, rows));
    count.backward += sum(backward_products(layer, rows));
  }
  return count;
}

std::vector<GemmShape> products_of(const LayerSpec& layer, Size rows) {
  std::vector<GemmShape> all = forward_products(layer, rows);
  for (const GemmShape& product : backward_products(layer, rows)) all.push_back(product);
  return all;
}

}  // namespace tessera
