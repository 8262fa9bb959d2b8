// SPDX-License-Identifier: Apache-2.0
// The kinds of layers: functions that make their LayerSpec, each in a source file of its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/nn/layers/layer_spec.hpp>

namespace tessera {

/// y = x kernel: kernel (in, out), drawn with fold_in(key(seed), stream). Along `model` it is
/// whole, column-parallel (the kernel's columns are split) or row-parallel (its rows).
LayerSpec linear(std::string name, std::string unit, Size input, ParameterSpec kernel);

/// y = activation(x + bias): bias (out), zero at first, whose dimension has the logical name
/// `bias_axis`; without one there is no bias. Along `model` it lies as its input does.
LayerSpec pointwise(std::string name, std::string unit, Size input, Size width,
                    Activation activation, const std::optional<std::string>& bias_axis = {});

/// y = a + b, as where a residual joins its block. Along `model` any layout goes.
LayerSpec add(std::string name, std::string unit, Size a, Size b, Size width);

inline constexpr double layer_norm_epsilon = 1e-5;  ///< added to the variance

/// y = scale (x - mean) / sqrt(variance + epsilon) + bias along each row (Ba et al. 2016): scale
/// and bias (width), ones and zeros at first. Along `model` rows may be split, columns not.
LayerSpec layer_norm(std::string name, std::string unit, Size input, Size width,
                     const std::string& logical_axis);

/// y = table[x] + position: x is one column of the batch, numbers of `vocabulary` classes, and each
/// of `context` positions of a sample has a vector of its own. Parameters "table" (vocabulary,
/// width), drawn from `stream`, and "position" (context, width), from the next one. A number that
/// is no class gives NaN. Along `model` a rank has some rows of the table: the output is a sum.
LayerSpec embedding(std::string name, std::string unit, Size vocabulary, Size context, Size width,
                    std::uint32_t stream);

/// Causal self-attention of `heads` heads (Vaswani et al. 2017): of each head the input has the
/// columns q, k and v, side by side, and the output softmax(q k^T / sqrt(columns)) v, where a
/// position sees itself and those before it. Input width: 3 * heads * head_width. Along `model` a
/// rank has some heads.
///
/// Nothing is kept: backward computes the probabilities again, a head at a time, so that memory
/// does not grow with the square of the positions of all samples (Dao et al. 2022).
LayerSpec causal_attention(std::string name, std::string unit, Size qkv, Size heads,
                           Size head_width);

/// A draw from the normal distribution that two layers of `width` columns describe (Kingma and
/// Welling 2014, "Auto-Encoding Variational Bayes", section 2.4):
/// z = mean + exp(logvar / 2) eps, eps standard normal. eps is a function of the seed, the step,
/// and the row and column in the whole batch, and is drawn again for backward. Adds beta KL(N(mean,
/// exp(logvar)) || N(0, 1)) = -beta/2 sum (1 + logvar - mean^2 - exp(logvar)), a sum over columns
/// and samples, to the sum of the losses (appendix B). Rows, and so their numbers, are those of the
/// batch: along `model` it is whole.
LayerSpec reparameterize(std::string name, std::string unit, Size mean, Size logvar, Size width,
                         double beta, std::uint64_t seed);

/// Dimensions d of the space on which u lives.
inline constexpr Size jet_dimensions = 2;
/// Rows of a sample: u, its derivatives u_i and its second derivatives u_ii at one point, and u at
/// another point, which is on the boundary.
inline constexpr Size jet_rows = 2 * jet_dimensions + 2;

/// Whether jets know the first three derivatives of an activation.
constexpr bool has_jets(Activation a) { return a == Activation::tanh || a == Activation::identity; }

/// y = activation(x + bias) where x and y have the rows above: with z = x + bias, s = activation(z)
/// and s', s'' its derivatives there, y = s, y_i = s' x_i and y_ii = s'' x_i^2 + s' x_ii, which is
/// the chain rule. A bias, as pointwise() has it, is added to u in both places; it moves no
/// derivative. `activation`: one that has_jets(). Along `model` it lies as its input does.
LayerSpec jet_activation(std::string name, std::string unit, Size input, Size width,
                         Activation activation, const std::optional<std::string>& bias_axis = {});

/// A field on n x n points and those of its modes that a Fourier neural operator keeps.
struct FourierGrid {
  Size n = 0;      ///< points along each dimension; at least 2 modes
  Size modes = 0;  ///< frequencies k2 in [0, modes), and k1 in [0, modes) and [n - modes, n)
  Size width = 0;  ///< channels
  Size kept() const { return 2 * modes * modes; }
};

/// y(k) = (1 / n^2) sum over x of v(x) exp(-2 pi i k x / n), of the kept modes: (n n, width) to one
/// row of kept() * 2 * width columns, mode after mode with k1 slowest; of each the real parts of
/// all channels, then the imaginary ones. Along `model` a rank transforms to frequencies k1 of its
/// own, if a rule splits "modes".
LayerSpec fourier(std::string name, std::string unit, Size input, const FourierGrid& grid);

/// y(k) = x(k) R(k) for each mode k, of complex numbers: rows of fourier()'s columns to rows of the
/// same. Parameter "modes" (kept(), 2 * width, width): of each mode the real parts of R, above the
/// imaginary ones; uniform on [0, 1) / width^2 at first, drawn from `stream`. Along `model` a rank
/// has R of its own modes, which is never gathered there.
LayerSpec mode_product(std::string name, std::string unit, Size input, const FourierGrid& grid,
                       std::uint32_t stream);

/// v(x) = sum over the kept modes of weight(k2) Re(y(k) exp(2 pi i k x / n)), where a mode stands
/// for its conjugate too: the weight is 1 for k2 = 0 and n / 2, else 2. One row of fourier()'s
/// columns to (n n, width): what a real field was made of, if it has no other modes. Along `model`
/// a rank adds up its own modes: the output is a sum.
LayerSpec inverse_fourier(std::string name, std::string unit, Size input, const FourierGrid& grid);

}  // namespace tessera
