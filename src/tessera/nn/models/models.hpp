// SPDX-License-Identifier: Apache-2.0
// The models: what each is asked for, and the layers that it is made of, in a source file each.
#pragma once

#include <string_view>
#include <vector>

#include <tessera/nn/models/model_spec.hpp>

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

struct ResidualMlpConfig {
  Size input_width = 4;
  Size width = 64;         ///< of the residual stream
  Size inner_width = 256;  ///< between fc1 and fc2
  Size blocks = 2;
  Size output_width = 1;
  friend bool operator==(const ResidualMlpConfig&, const ResidualMlpConfig&) = default;
};

/// x = input kernel + bias; blocks x + fc2(activation(fc1(ln(x)))); output kernel + bias. Units
/// "input", "block1/ln", "block1/fc1", "block1/fc2", ..., "output". fc1 is (embed, mlp) and fc2
/// (mlp, embed). `layers`: activations, bias, initializer and seed. Throws ConfigError for a size
/// that is not positive.
ModelSpec residual_mlp(const ResidualMlpConfig& config, const MlpConfig& layers = {});

struct TransformerConfig {
  Size vocabulary = 64;
  Size context = 32;  ///< positions of a sequence
  Size width = 64;    ///< of the residual stream
  Size heads = 4;     ///< of an attention layer
  Size blocks = 2;
  Size inner_width = 256;  ///< between fc1 and fc2
  friend bool operator==(const TransformerConfig&, const TransformerConfig&) = default;
};

/// A decoder of GPT-2's shape (Radford et al. 2019): x = table[token] + position; blocks
/// x += proj(attention(qkv(ln1(x)))), x += fc2(activation(fc1(ln2(x)))); logits = ln(x) kernel.
/// Units "embedding", "block1/ln1", "block1/qkv", "block1/proj", "block1/ln2", "block1/fc1",
/// "block1/fc2", ..., "ln", "logits". qkv is (embed, heads) and proj (heads, embed), fc1 (embed,
/// mlp) and fc2 (mlp, embed), table (vocab, embed) and logits (embed, vocab). `layers`: activation,
/// bias, initializer and seed. Throws ConfigError for a size that is not positive, and for a width
/// that heads do not divide.
ModelSpec transformer(const TransformerConfig& config, const MlpConfig& layers = {});

struct VaeConfig {
  Size input_width = 784;
  std::vector<Size> hidden{512, 512};  ///< of the encoder; the decoder has them in reverse
  Size latent = 20;                    ///< columns of z
  double beta = 1;                     ///< weight of the KL divergence (Higgins et al. 2017)
  friend bool operator==(const VaeConfig&, const VaeConfig&) = default;
};

/// A variational autoencoder (Kingma and Welling 2014): hidden layers, two heads on the last of
/// them, mean and logvar of a normal distribution, a draw z from it, and hidden layers back to the
/// logits of the input. With the loss bce the mean over samples is -ELBO, if beta is 1. Units
/// "encoder1", ..., "mean", "logvar", "decoder1", ... Kernels of encoder and decoder are (embed,
/// mlp) and (mlp, embed) in turn, each from the first one on; those of the heads, which are small,
/// are row-parallel, or whole. `layers`: activation between layers, bias, initializer and seed, of
/// the noise as well. Throws ConfigError for a size that is not positive, and for an activation of
/// the output.
ModelSpec vae(const VaeConfig& config, const MlpConfig& layers = {});

struct PinnConfig {
  Size width = 64;  ///< of the hidden layers
  Size layers = 3;  ///< hidden ones
  friend bool operator==(const PinnConfig&, const PinnConfig&) = default;
};

/// A physics-informed network (Raissi, Perdikaris and Karniadakis 2019): an MLP u(x, y), held
/// against an equation of second order. A sample is a point inside the domain and one of its
/// boundary. Its rows are those of jet_activation(): x has what they are of the map (x, y) itself,
/// which is the point inside, the unit vectors, zeros and the boundary point; the prediction has
/// them of u. Units "layer1", "layer2", ... and their logical names are those of an mlp. `layers`:
/// activations, bias, initializer and seed. Throws ConfigError for a size that is not positive, and
/// for an activation whose derivatives jets do not have.
ModelSpec pinn(const PinnConfig& config, const MlpConfig& layers);

struct FnoConfig {
  Size grid = 32;   ///< points along each dimension
  Size modes = 12;  ///< kept along the second dimension; twice as many along the first
  Size width = 32;  ///< channels of the field
  Size layers = 4;
  Size projection = 128;  ///< width between the two layers of the projection
  friend bool operator==(const FnoConfig&, const FnoConfig&) = default;
};

/// A Fourier neural operator in two dimensions (Li et al. 2021). x (grid grid, 3): a function at
/// the points of a grid, and their coordinates; y (grid grid, 1). Unit "lift" takes the columns to
/// `width` channels; "layer1", "layer2", ...: v = activation(K v + v kernel + bias), K v being
/// inverse_fourier(mode_product(fourier(v))), without an activation in the last one; "projection"
/// and "output" take the channels to `projection` columns and to one. Along `model` the modes are
/// split, and `projection`. `layers`: activation, initializer, seed, and whether dense layers have
/// a bias. Throws ConfigError for a size that is not positive or too large, and for a grid of fewer
/// points than two times the modes.
ModelSpec fno(const FnoConfig& config, const MlpConfig& layers = {});

/// The most that the value of a key may be: products of two sizes are numbers of elements.
inline constexpr Size most_columns = Size{1} << 31;
inline constexpr Size most_positions = Size{1} << 24;  ///< of a sequence or a grid
inline constexpr Size most_layers = 1024;              ///< blocks, or layers one behind the other

/// Throws ConfigError unless the value of a key is from 1 to `most`.
void check_size(std::string_view key, Size value, Size most = most_columns);
void check_sizes(std::string_view key, const std::vector<Size>& values);

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
