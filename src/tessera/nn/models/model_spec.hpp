// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/random/initializer.hpp>

namespace tessera {

/// What a model's predictions are held against.
enum class Targets : std::uint8_t {
  values,     ///< numbers, of the prediction's shape
  classes,    ///< the number of the right column, one for each row
  residuals,  ///< what an equation says of the prediction's derivatives, of the prediction's shape
};

/// A model as data: its layers in the order of computation. The last one's output is the
/// prediction.
struct ModelSpec {
  std::vector<LayerSpec> layers;
  Size input_width = 0;  ///< columns of x
  Initializer initializer = Initializer::lecun_normal;
  std::uint64_t seed = 42;
  Size input_positions = 1;  ///< rows of a sample in x
  Targets targets = Targets::values;
  Size classes = 0;  ///< of x, if that holds numbers of classes

  Size output_width() const { return layers.back().out; }
  Size output_positions() const { return layers.back().positions; }
  /// Columns of y, whose rows are those of the prediction.
  Size target_width() const { return targets == Targets::classes ? 1 : output_width(); }
  Size num_parameters() const;

  /// Appends a layer, with its positions; returns its number, by which others name it as an input.
  Size append(LayerSpec layer);
};

/// A layer of the model adds a term of its own to the loss.
bool adds_loss(const ModelSpec& model);

/// A layer of the model draws its output: samples can be generated from its prior.
bool draws(const ModelSpec& model);

/// FLOPs of the matrix products on `samples` samples; `layers` with a rank's extents, or whole
/// ones. The gradient of x is never wanted.
struct PassCount {
  double forward = 0;
  double backward = 0;
  double total() const { return forward + backward; }
};
PassCount count_flops(const std::vector<LayerSpec>& layers, Size samples);

/// Elements of the operands of a layer, parameters included, each read or written once: what its
/// kernels move at least.
PassCount count_operands(const LayerSpec& layer, Size samples);

/// All products of a layer, forward and backward.
std::vector<GemmShape> products_of(const LayerSpec& layer, Size samples);

}  // namespace tessera
