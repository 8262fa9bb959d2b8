// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/placement.hpp>
#include <tessera/nn/activation.hpp>

namespace tessera {

/// How a parameter begins.
enum class Initial : std::uint8_t {
  zeros,
  ones,
  drawn,    ///< by the model's initializer; fan in and fan out are the first and the last extent
  uniform,  ///< on [0, 1) over the square of the last extent
};

/// One parameter of a layer. The logical names of its dimensions are what sharding rules speak of;
/// an empty name is a dimension that no rule splits.
struct ParameterSpec {
  std::string name;  ///< "kernel"
  Shape shape;
  std::vector<std::string> logical_axes;  ///< one name per dimension
  Initial initial = Initial::zeros;
  std::uint32_t stream = 0;  ///< drawn with fold_in(key(seed), stream)
};

/// Of Initial::uniform.
inline float uniform_limit(const ParameterSpec& parameter) {
  return 1 / static_cast<float>(parameter.shape.back() * parameter.shape.back());
}

struct LayerRow;  // <tessera/nn/layers/layer_row.hpp>

/// Groups of a layer's output columns, such as heads: a rank of `model` has whole groups, and all
/// ranks have equally many.
struct ColumnGroups {
  Size columns = 1;         ///< of a group
  std::string_view noun{};  ///< "heads"
  std::string_view key{};   ///< the configuration key that sets their number; empty: no groups
  Size value = 0;           ///< of the key
};

/// A layer as data: it reads outputs of earlier layers, each (rows, columns), and makes one output.
/// A sample has one row or several, its positions: those of a sequence, the points of a grid.
struct LayerSpec {
  /// Stands for the batch's x in `inputs`.
  static constexpr Size data = -1;

  const LayerRow* kind = nullptr;
  std::string name;          ///< of the output: "layer1/output"
  std::string unit;          ///< parameters of one unit lie in one flat buffer: "layer1"
  std::vector<Size> inputs;  ///< layers whose outputs it reads
  Size in = 0;               ///< columns of the inputs
  Size out = 0;              ///< columns of the output
  std::vector<ParameterSpec> parameters{};
  Activation activation = Activation::identity;  ///< of pointwise layers
  /// Rows of a sample in the inputs and in the output. ModelSpec::append takes the first from the
  /// inputs, and the second as well, unless the two differ.
  Size in_positions = 1, positions = 1;
  ColumnGroups groups{};
  std::vector<Size> settings{};  ///< what else the kind wants to know
  double loss_weight = 0;        ///< of the term that the kind adds to the loss
  /// The logical name of the output's columns, for rules that choose the layout of a kind without
  /// parameters.
  std::string columns{};
  /// Of a rank's part: where it begins in what `model` splits of the output's columns, or else of
  /// the inputs' columns, or else of the first parameter.
  Size first = 0;

  Size num_parameters() const {
    Size sum = 0;
    for (const ParameterSpec& parameter : parameters) sum += num_elements(parameter.shape);
    return sum;
  }
};

/// "layer1/kernel"
inline std::string path_of(const LayerSpec& layer, const ParameterSpec& parameter) {
  return layer.unit + "/" + parameter.name;
}

/// Where a layer's tensors lie along the axis `model`, one way that its kind can compute.
struct Layout {
  std::vector<Placement> parameters{};  ///< and their moments
  std::vector<Placement> inputs{};      ///< as forward and backward read them
  Placement output{};
  Placement output_gradient{};                   ///< as backward reads it
  std::vector<Placement> input_gradients{};      ///< as backward gives them
  std::vector<Placement> parameter_gradients{};  ///< Partial where each rank saw some rows only
};

/// A matrix product C (m, n) += A (m, k) B (k, n), or several of one shape.
struct GemmShape {
  Size m = 0, n = 0, k = 0;
  Size times = 1;
  /// A multiplication and an addition each.
  /// Of whole machines they exceed 64 bits; exact up to 2^53.
  constexpr double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
           static_cast<double>(times);
  }
};

}  // namespace tessera
