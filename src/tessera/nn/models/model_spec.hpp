// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/random/initializer.hpp>

namespace tessera {

/// Kinds of targets that predictions are compared with.
enum class Targets : std::uint8_t {
  values,     ///< numbers, in the prediction's shape
  classes,    ///< one class number per row
  residuals,  ///< right-hand sides of an equation for the prediction's derivatives, in its shape
};

/// A model as data: its layers in the order of computation. The last output is the prediction.
struct ModelSpec {
  std::vector<LayerSpec> layers;
  Size input_width = 0;  ///< columns of x
  Initializer initializer = Initializer::lecun_normal;
  std::uint64_t seed = 42;
  Size input_positions = 1;  ///< rows of a sample in x
  Targets targets = Targets::values;
  Size classes = 0;                    ///< number of classes, if x has class numbers; else 0
  std::optional<Size> ignore_index{};  ///< targets with this number do not count; Targets::classes

  Size output_width() const { return layers.back().out(); }
  Size output_positions() const { return layers.back().positions(); }
  /// Returns the columns of y, which has the rows of the prediction.
  Size target_width() const { return targets == Targets::classes ? 1 : output_width(); }
  Size num_parameters() const;

  /// Appends a layer and returns its number, for the inputs of later layers. A layer with one
  /// position takes as many as its first input has. Throws Error (usage) for an input that does not
  /// precede the layer or has other columns or positions than the layer reads, for parameters that
  /// do not fit, and for a parameter with the path of another one.
  Size append(LayerSpec layer);
};

/// Sums that layers make in a forward pass: terms of the loss, and BatchFacts::routing.
struct LayerSums {
  Size losses = 0, routing = 0;
};
/// Returns the numbers of sums of the first `layers` layers, or of all.
LayerSums sums_of(const ModelSpec& model, Size layers);
LayerSums sums_of(const ModelSpec& model);
/// Returns true if a layer of the model adds a term to the loss.
inline bool adds_loss(const ModelSpec& model) { return sums_of(model).losses > 0; }

/// Gives each layer that reads a tensor in two roles, one of which streams an index (Expression), a
/// second input for that role: attention reads the output of a keys_values() layer before it. Does
/// nothing the second time.
void separate_roles(ModelSpec& model);

/// Returns true if a layer of the model is attention, which streams an index (Expression).
bool attends(const ModelSpec& model);
/// Returns true if a layer of the model draws its output, so that the prior can generate samples.
bool draws(const ModelSpec& model);

/// Returns the FLOPs of the matrix products on `samples` samples; layers may have a rank's extents.
/// There is no gradient of x.
PassCount count_flops(const std::vector<LayerSpec>& layers, Size samples);

/// Returns the elements of a layer's operands, with its parameters: the least that its kernels read
/// and write.
PassCount count_operands(const LayerSpec& layer, Size samples);

/// Returns all products of a layer, forward and backward.
std::vector<GemmShape> products_of(const LayerSpec& layer, Size samples);

}  // namespace tessera
