// SPDX-License-Identifier: Apache-2.0
// The models: a struct of sizes and a function that makes the list of layers for each. Each
// function is defined in a source file of its name. README.md has the formulas.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <tessera/base/names.hpp>
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

/// A chain of layers y = activation(x kernel + bias). Units "layer1", "layer2", ...; the logical
/// axes of kernels alternate between (embed, mlp) and (mlp, embed). Throws ConfigError for fewer
/// than two widths and for a width that is not positive.
ModelSpec mlp(const MlpConfig& config);

struct ResidualMlpConfig {
  Size input_width = 4;
  Size width = 64;         ///< of the residual stream
  Size inner_width = 256;  ///< between fc1 and fc2
  Size blocks = 2;
  Size output_width = 1;
  friend bool operator==(const ResidualMlpConfig&, const ResidualMlpConfig&) = default;
};

/// An input layer, blocks x + fc2(activation(fc1(ln(x)))), and an output layer. Units "input",
/// "block1/ln", "block1/fc1", "block1/fc2", ..., "output". Logical axes of kernels: fc1 (embed,
/// mlp), fc2 (mlp, embed). `layers` gives activations, bias, initializer and seed. Throws
/// ConfigError for a size that is not positive.
ModelSpec residual_mlp(const ResidualMlpConfig& config, const MlpConfig& layers = {});

enum class NormKind : std::uint8_t { layer_norm, rms_norm };
template <>
inline constexpr std::array<std::string_view, 2> names_of<NormKind>{"layer_norm", "rms_norm"};

/// How a transformer knows positions.
enum class Positions : std::uint8_t {
  learned,  ///< a vector for each position is added to the embedding
  rope,     ///< queries and keys are rotated
};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Positions>{"learned", "rope"};

enum class FeedForward : std::uint8_t {
  plain,  ///< fc2(activation(fc1(x)))
  gated,  ///< fc2(activation(a) b) with the columns a and b of fc1(x)
};
template <>
inline constexpr std::array<std::string_view, 2> names_of<FeedForward>{"plain", "gated"};

/// The ways to keep the load of experts even.
enum class Balance : std::uint8_t {
  loss,  ///< a term of the loss
  bias,  ///< a bias per expert, which moves after each step and only chooses
};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Balance>{"loss", "bias"};

struct TransformerConfig {
  Size vocabulary = 64;
  Size context = 32;  ///< positions of a sequence
  Size width = 64;    ///< of the residual stream
  Size heads = 4;     ///< of an attention layer
  Size blocks = 2;
  Size inner_width = 256;  ///< between fc1 and fc2
  NormKind norm = NormKind::layer_norm;
  double norm_epsilon = 1e-5;
  Positions positions = Positions::learned;
  double rope_theta = 10000;          ///< of Positions::rope, as the next four (see Rope)
  double rope_scaling = 1;            ///< divides low frequencies; 1: none
  Size rope_original_context = 8192;  ///< for rope_scaling, as the next two
  double rope_low_turns = 1, rope_high_turns = 4;
  Size kv_heads = 0;     ///< heads of keys and values; 0: as many as heads
  bool qk_norm = false;  ///< norms the queries and keys of each head
  FeedForward feed_forward = FeedForward::plain;
  Size experts = 0;  ///< pairs of fc1 and fc2 in a block, a mixture of experts; 0: one pair
  Size top_k = 2;    ///< experts that a position chooses
  double capacity_factor = 1.25;  ///< room of an expert over its even load; 0: nothing is dropped
  double balance_loss = 0.01, router_z_loss = 0.001;  ///< weights of route()'s terms of the loss
  Router router = Router::softmax;
  bool renormalize = false;  ///< the gates of a position's experts have the sum 1
  Size shared_experts = 0;   ///< inner widths of a feed-forward for all positions beside experts
  Balance balance = Balance::loss;
  double bias_rate = 0.001;  ///< for Balance::bias
  bool tied = false;         ///< the logits are products with the embedding's table
  friend bool operator==(const TransformerConfig&, const TransformerConfig&) = default;
};

/// A decoder of GPT-2's shape (Radford et al. 2019) or, with other settings, of Llama's (Touvron et
/// al. 2023). Units "embedding", "block1/ln1", "block1/qkv",
/// "block1/proj", "block1/ln2", "block1/fc1", "block1/fc2", ..., "ln", "logits". Logical axes:
/// table (vocab, embed), qkv (embed, heads), proj (heads, embed), fc1 (embed, mlp), fc2 (mlp,
/// embed), logits (embed, vocab). With experts, fc1 and fc2 are (experts, in, out), with the
/// logical axis "experts", and a block has a unit "block1/router"; with shared_experts also
/// "block1/shared/fc1" and "block1/shared/fc2", which are dense. With rope, kv_heads or qk_norm,
/// units "block1/q" and "block1/kv" replace "block1/qkv". `layers` gives activation, bias,
/// initializer and seed. Throws ConfigError for a size that is not positive, for a number of heads
/// that does not divide the width evenly, and for keys of experts without experts.
ModelSpec transformer(const TransformerConfig& config, const MlpConfig& layers = {});

struct VaeConfig {
  Size input_width = 784;
  std::vector<Size> hidden{512, 512};  ///< of the encoder; the decoder has them in reverse
  Size latent = 20;                    ///< columns of z
  double beta = 1;                     ///< weight of the KL divergence (Higgins et al. 2017)
  friend bool operator==(const VaeConfig&, const VaeConfig&) = default;
};

/// A variational autoencoder (Kingma and Welling 2014). With the loss bce and beta = 1, the mean
/// over samples is -ELBO. Units "encoder1", ..., "mean", "logvar", "decoder1", .... The logical
/// axes of the kernels in encoder and decoder alternate between (embed, mlp) and (mlp, embed).
/// `layers` gives the activation between layers, bias, initializer, and the seed, also of the
/// noise. Throws ConfigError for a size that is not positive and for an output activation.
ModelSpec vae(const VaeConfig& config, const MlpConfig& layers = {});

struct PinnConfig {
  Size width = 64;  ///< of the hidden layers
  Size layers = 3;  ///< hidden ones
  friend bool operator==(const PinnConfig&, const PinnConfig&) = default;
};

/// A physics-informed network (Raissi et al. 2019): an MLP u(x, y) with the rows of
/// jet_activation(). The batch's x has the interior point, the unit vectors, zeros and the boundary
/// point. Units and logical axes are those of mlp(). `layers` gives activations, bias, initializer
/// and seed. Throws ConfigError for a size that is not positive and for an activation without
/// has_jets().
ModelSpec pinn(const PinnConfig& config, const MlpConfig& layers);

struct FnoConfig {
  Size grid = 32;   ///< points along each dimension
  Size modes = 12;  ///< kept along the second dimension; twice as many along the first
  Size width = 32;  ///< channels of the field
  Size layers = 4;
  Size projection = 128;  ///< width between the two layers of the projection
  friend bool operator==(const FnoConfig&, const FnoConfig&) = default;
};

/// A Fourier neural operator in two dimensions (Li et al. 2021). x (grid grid, 3) has a function at
/// the points of a grid, and their coordinates; y is (grid grid, 1). Units "lift", "layer1",
/// "layer2", ..., of which the last one has no activation, "projection" and "output". `layers`
/// gives activation, initializer, seed, and the bias of dense layers. Throws ConfigError for a size
/// that is not positive or too large, and for a grid with less than 2 modes points along a
/// dimension.
ModelSpec fno(const FnoConfig& config, const MlpConfig& layers = {});

/// A dense layer: activation(input kernel + bias). The kernel (in, out) has the logical axes
/// (logical_in, logical_out) and is drawn from stream 2 number.
struct DenseSpec {
  std::string unit;
  Size input = LayerSpec::data;
  Size in = 0, out = 0;
  std::string logical_in, logical_out;
  Activation activation = Activation::identity;
  bool bias = true;
  std::uint32_t number = 0;
  bool of_jets = false;  ///< samples have the rows of jet_activation()
  Size experts = 0;      ///< so many kernels, with the logical axis "experts"
  Size gates = 1;        ///< columns for each of `out`, which gated() reads
};

/// Appends the layers of a dense layer; returns the number of the last one.
Size append_dense(ModelSpec& model, const DenseSpec& dense);

/// A chain of dense layers with the activation and bias of `layers`. The logical axes of kernels
/// alternate between (embed, mlp) and (mlp, embed).
struct ChainSpec {
  std::string unit;  ///< units are unit1, unit2, ...
  Size input = LayerSpec::data;
  std::vector<Size> widths;  ///< of the input and of each output
  Activation last_activation = Activation::identity;
  bool of_jets = false;  ///< as in DenseSpec
};

/// Appends the layers; returns the number of the last one, or the input if there is none. Adds the
/// number of dense layers to `number`, the DenseSpec::number of the first.
Size append_chain(ModelSpec& model, const ChainSpec& chain, const MlpConfig& layers,
                  std::uint32_t& number);

}  // namespace tessera
