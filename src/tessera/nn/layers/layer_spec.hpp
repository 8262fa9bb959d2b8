// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tessera/base/names.hpp>
#include <tessera/base/placement.hpp>
#include <tessera/base/split.hpp>
#include <tessera/nn/activation.hpp>
#include <tessera/nn/device_traits.hpp>

namespace tessera {

/// Initial values of a parameter.
enum class Initial : std::uint8_t {
  zeros,
  ones,
  drawn,    ///< from the model's initializer; the last two extents are fan in and fan out
  uniform,  ///< on [0, 1) / (last extent)^2
};

/// One parameter of a layer. Sharding rules refer to the logical names of its dimensions; no rule
/// splits a dimension with an empty name.
struct ParameterSpec {
  std::string name;  ///< "kernel"
  Shape shape;
  std::vector<std::string> logical_axes;  ///< one name per dimension
  Initial initial = Initial::zeros;
  std::uint32_t stream = 0;  ///< random numbers use the key fold_in(key(seed), stream)
  /// Not 0: each step moves the elements by so much against the sign of the gradient. Learning
  /// rate, moments, decay and clipping do not act on them, and norms of gradients leave them out.
  double sign_rate = 0;
};

/// Returns the fan in of a parameter with Initial::drawn.
inline Size fan_in(const Shape& shape) { return shape[shape.size() < 2 ? 0 : shape.size() - 2]; }

/// Returns the upper limit of Initial::uniform.
inline float uniform_limit(const ParameterSpec& parameter) {
  return 1 / static_cast<float>(parameter.shape.back() * parameter.shape.back());
}

struct LayerKind;  // <tessera/nn/layers/layer_kind.hpp>

/// A field on n x n points, and the modes of it that a Fourier neural operator keeps.
struct FourierGrid {
  Size n = 0;      ///< points along each dimension; at least 2 modes
  Size modes = 0;  ///< frequencies k2 in [0, modes); k1 in [0, modes) and [n - modes, n)
  Size width = 0;  ///< channels
  /// Number of modes that are kept.
  Size num_modes() const { return 2 * modes * modes; }
  friend bool operator==(const FourierGrid&, const FourierGrid&) = default;
};

/// How a layer that mixes positions gets those of the other ranks of the mesh axis `context`.
enum class ContextAttention : std::uint8_t {
  gather,      ///< every rank gathers the keys and values of all positions
  ring,        ///< keys and values go round, one rank's at a time (Liu et al. 2023)
  all_to_all,  ///< ranks exchange positions for heads before the layer, and back
};
template <>
inline constexpr std::array<std::string_view, 3> names_of<ContextAttention>{"gather", "ring",
                                                                            "all_to_all"};

/// The scores that a router makes of its logits.
enum class Router : std::uint8_t {
  softmax,  ///< of the logits of all experts
  sigmoid,  ///< of each logit (DeepSeek-V3: DeepSeek-AI 2024)
};
template <>
inline constexpr std::array<std::string_view, 2> names_of<Router>{"softmax", "sigmoid"};

/// The routing of a mixture of experts (route() in layers.hpp).
struct Routing {
  Size experts = 0;
  Size top_k = 1;                           ///< experts that a position chooses
  Size capacity = 1;                        ///< positions of a sample that an expert takes
  double balance_weight = 0, z_weight = 0;  ///< factors of the terms of the loss
  Router router = Router::softmax;
  bool renormalize = false;  ///< the gates of the chosen experts have the sum 1
  double bias_rate = 0;      ///< steps of the biases that balance the load; 0: no biases
  friend bool operator==(const Routing&, const Routing&) = default;
};

/// The draws of reparameterize().
struct LatentDraw {
  double loss_weight = 0;  ///< factor of the term of the loss
  std::uint64_t seed = 0;
  friend bool operator==(const LatentDraw&, const LatentDraw&) = default;
};

/// The settings of a norm.
struct NormSettings {
  double epsilon = 1e-5;  ///< added to the variance, or to the mean square
  friend bool operator==(const NormSettings&, const NormSettings&) = default;
};

/// The angles of rotary(). With original_context, frequencies that make fewer than low_turns turns
/// in it are divided by the factor, those above high_turns stay, and those between are interpolated
/// (Llama 3: Grattafiori et al. 2024).
struct Rope {
  double theta = 10000;
  double factor = 8, low_turns = 1, high_turns = 4;
  Size original_context = 0;  ///< positions that the model was trained with; 0: no scaling
  friend bool operator==(const Rope&, const Rope&) = default;
};

/// The global extent of an index of a layer (Expression), and the range of it on this rank. With
/// zigzag a rank has two runs of positions, and only own.count is valid.
struct Extent {
  Size total;
  Range own;
  Extent(Size n) : total(n), own{0, n} {}  // NOLINT: tables of extents have numbers
  friend bool operator==(const Extent&, const Extent&) = default;
};

/// The configuration key that sets how many groups of columns, such as heads, a layer has.
struct GroupsKey {
  std::string_view noun{};  ///< "heads", for messages
  std::string_view name{};  ///< empty if there is none
  Size value = 0;
  bool may_repeat = false;  ///< several ranks may have the same group, as those of keys
};

/// A layer as data. It reads outputs of earlier layers and makes one output; all are matrices
/// (rows, columns). A sample has one row or several (its positions): those of a sequence, or the
/// points of a grid.
struct LayerSpec {
  /// The batch's x, as an entry of `inputs`.
  static constexpr Size data = -1;

  const LayerKind* kind = nullptr;
  std::string name;          ///< name of the output: "layer1/output"
  std::string unit;          ///< parameters of one unit share a flat buffer: "layer1"
  std::vector<Size> inputs;  ///< numbers of the layers whose outputs it reads
  /// The extent of each index of the kind's expression, by its letter, without samples.
  /// ModelSpec::append sets the rows of a sample from the first input, if they are missing.
  std::map<char, Extent> sizes{};
  std::vector<ParameterSpec> parameters{};
  /// Number of an earlier layer whose first parameter this layer uses as its own; -1: none. Only
  /// the last layer of a model may have one.
  Size tied_to = -1;
  /// The settings of the kind beside its sizes.
  std::variant<std::monostate, Activation, NormSettings, Rope, FourierGrid, Routing, LatentDraw>
      settings{};
  GroupsKey groups{};
  /// The rank's rows of a sample, if `context` splits positions. If p has its whole extent,
  /// matrices have the rows of all ranks: those of rank 0 for all samples, then those of rank 1,
  /// and so on.
  SplitPart share{};
  Tiling tiling = DeviceTraits().tiling();  ///< plans set that of their device

  template <class Settings>
  const Settings& get() const {
    return std::get<Settings>(settings);
  }
  /// Returns the part of an index that the rank has; one index if the layer does not have it.
  Range part(char index) const {
    const auto found = sizes.find(index);
    return found == sizes.end() ? Range{0, 1} : found->second.own;
  }
  /// Returns the number of all values of an index.
  Size total(char index) const {
    const auto found = sizes.find(index);
    return found == sizes.end() ? 1 : found->second.total;
  }
  /// Returns the number of the rank's values of some indices together.
  Size size(std::string_view indices) const {
    Size product = 1;
    for (const char index : indices) product *= part(index).count;
    return product;
  }
  // Columns, and rows per sample, of an input and of the output.
  Size columns_of(std::size_t input) const;
  Size positions_of(std::size_t input) const;
  Size in() const { return columns_of(0); }
  Size out() const;
  Size positions() const;
  /// Returns the first column of the rank's part of the output.
  Size first_column() const;
  /// Returns the number of experts, if the layer works on each of them by itself; else 0.
  Size experts() const;
  Size num_parameters() const {
    Size sum = 0;
    for (const ParameterSpec& parameter : parameters) sum += num_elements(parameter.shape);
    return sum;
  }
  /// Returns true if the layer computes with parameters, its own or another layer's.
  bool uses_parameters() const { return !parameters.empty() || tied_to >= 0; }
};

/// Returns the block of the model to which a layer belongs: its name up to the first slash, as
/// "block1" of "block1/fc1/output".
inline std::string_view block_of(const LayerSpec& layer) {
  return std::string_view(layer.name).substr(0, layer.name.find('/'));
}

/// "layer1/kernel"
inline std::string path_of(const LayerSpec& layer, const ParameterSpec& parameter) {
  return layer.unit + "/" + parameter.name;
}

/// Placements of a layer's tensors; Placement() keeps a tensor whole.
inline constexpr Placement by_rows = Placement::shard(0);  ///< or the elements of a vector
inline constexpr Placement by_columns = Placement::shard(1);
inline constexpr Placement as_terms = Placement::partial();

/// Placements of a layer's tensors along one mesh axis. Plans redistribute a tensor that is placed
/// otherwise.
struct Layout {
  std::string split{};                           ///< the indices that the axis splits
  Size repeats = 1;                              ///< ranks with the same part (Placement::repeats)
  Size units = 0, blocks = 0;                    ///< of these indices (Split); 0: balanced
  std::vector<Placement> parameters{};           ///< also of their moments
  std::vector<Placement> inputs{};               ///< as forward and backward read them
  Placement output{};                            ///< as forward writes it
  Placement output_gradient{};                   ///< as backward reads it
  std::vector<Placement> input_gradients{};      ///< as backward writes them
  std::vector<Placement> parameter_gradients{};  ///< Partial if ranks have different rows

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// An amount of work in the two passes.
struct PassCount {
  double forward = 0;
  double backward = 0;
  double total() const { return forward + backward; }
};

/// `times` matrix products C (m, n) += A (m, k) B (k, n) of one shape.
struct GemmShape {
  Size m = 0, n = 0, k = 0;
  Size times = 1;
  Size launches = times;  ///< fewer if one launch makes several products
  /// Returns the elements of A, B and C of all products.
  constexpr Size elements() const { return (m * k + k * n + m * n) * times; }
  /// 2 m n k per product. A double, because those of large machines exceed 64 bits; exact up to
  /// 2^53.
  constexpr double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
           static_cast<double>(times);
  }
  /// Returns the harmonic mean of the three sides, rounded. The FLOPs of a product for each element
  /// of A, B and C are proportional to it, so it tells how near products get to the highest rate.
  constexpr Size side() const {
    const double inverse =
        1 / static_cast<double>(m) + 1 / static_cast<double>(n) + 1 / static_cast<double>(k);
    return static_cast<Size>(3 / inverse + 0.5);
  }
};

}  // namespace tessera
