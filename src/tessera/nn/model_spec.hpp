// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/base/types.hpp>
#include <tessera/nn/activation.hpp>
#include <tessera/random/initializer.hpp>

namespace tessera {

/// y = activation(x kernel + bias): kernel (in, out), bias (out). The logical names of the two
/// dimensions are what sharding rules speak of.
struct LinearSpec {
  std::string name;
  Size in = 0;
  Size out = 0;
  Activation activation = Activation::identity;
  bool bias = true;
  std::string logical_in;
  std::string logical_out;

  Size num_parameters() const { return in * out + (bias ? out : 0); }
};

/// One parameter tensor, with its global shape.
struct ParameterSpec {
  std::string path;                       ///< "layer1/kernel", "layer1/bias"
  std::vector<Size> shape;                ///< (in, out) or (out)
  std::vector<std::string> logical_axes;  ///< one name per dimension
  Size layer = 0;                         ///< index into ModelSpec::layers
};

/// A model as data. Each layer is a unit: one flat buffer, the row-major kernel first, then the
/// bias; units follow one another in layer order. Layer l draws its kernel with
/// fold_in(key(seed), 2l).
struct ModelSpec {
  std::vector<LinearSpec> layers;
  Initializer initializer = Initializer::lecun_normal;
  std::uint64_t seed = 42;

  Size num_parameters() const;
  Size unit_elements(Size layer) const;
  Size unit_offset(Size layer) const;
  std::vector<ParameterSpec> parameters() const;
  Size input_width() const;
  Size output_width() const;
};

struct MlpConfig {
  std::vector<Size> widths{};  ///< input, hidden ..., output
  Activation activation = Activation::relu;
  Activation output_activation = Activation::identity;
  bool bias = true;
  Initializer initializer = Initializer::lecun_normal;
  std::uint64_t seed = 42;
};

/// A chain of linear layers "layer1", "layer2", ... whose kernels are (embed, mlp) and (mlp, embed)
/// in turn. Throws ConfigError if there are fewer than two widths or one is not positive.
ModelSpec mlp(const MlpConfig& config);

}  // namespace tessera
