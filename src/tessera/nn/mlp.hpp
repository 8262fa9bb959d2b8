// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include <tessera/nn/model_spec.hpp>

namespace tessera {

struct MlpConfig {
  std::vector<Size> widths{};  ///< input, hidden ..., output
  Activation activation = Activation::relu;
  Activation output_activation = Activation::identity;
  bool bias = true;
  Initializer initializer = Initializer::lecun_normal;
  std::uint64_t seed = 42;
};

/// y = activation(x kernel + bias), again and again: units "layer1", "layer2", ..., whose kernels
/// are (embed, mlp) and (mlp, embed) in turn. Throws ConfigError if there are fewer than two widths
/// or one is not positive.
ModelSpec mlp(const MlpConfig& config);

/// Throws ConfigError unless the value of a key is positive.
void check_positive(std::string_view key, Size value);

/// Throws ConfigError unless the last activation is the identity, for models that have none there.
void check_no_output_activation(std::string_view kind, const MlpConfig& layers);

/// Appends activation(input kernel + bias) as unit `unit`: kernel (in, out), drawn from stream
/// 2 number, whose dimensions have these logical names. Returns the number of the last layer.
struct DenseSpec {
  std::string unit;
  Size input = LayerSpec::data;
  Size in = 0, out = 0;
  std::string logical_in, logical_out;
  Activation activation = Activation::identity;
  bool bias = true;
  std::uint32_t number = 0;
  bool of_jets = false;  ///< of samples as jet_activation() has them
};
Size append_dense(ModelSpec& model, const DenseSpec& dense);

}  // namespace tessera
