// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <tessera/nn/layer_spec.hpp>
#include <tessera/random/initializer.hpp>

namespace tessera {

/// A model as data: its layers in the order of computation. The last one's output is the
/// prediction.
struct ModelSpec {
  std::vector<LayerSpec> layers;
  Size input_width = 0;  ///< columns of x
  Initializer initializer = Initializer::lecun_normal;
  std::uint64_t seed = 42;

  Size output_width() const { return layers.back().out; }
  Size num_parameters() const;

  /// Appends a layer; returns its number, by which others name it as an input.
  Size append(LayerSpec layer);
};

/// FLOPs of the matrix products on `rows` rows; `layers` with a rank's extents, or whole ones. The
/// gradient of x is never wanted.
struct FlopCount {
  Size forward = 0;
  Size backward = 0;
  Size total() const { return forward + backward; }
};
FlopCount count_flops(const std::vector<LayerSpec>& layers, Size rows);

/// All products of a layer, forward and backward.
std::vector<GemmShape> products_of(const LayerSpec& layer, Size rows);

}  // namespace tessera
