// SPDX-License-Identifier: Apache-2.0
// The kinds of layers. Each function makes a LayerSpec and is defined in a source file of its name;
// kinds that are the same but for an index, or for the direction, have one file. README.md lists
// their expressions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/nn/layers/layer_spec.hpp>

namespace tessera {

/// y = x kernel, with kernel (in, out).
///
/// A kernel (groups, in, out) is block-diagonal: x has the columns of group after group, and each
/// group is multiplied by a kernel of its own (kind "grouped_linear"). Every `gates` columns of y
/// stay together: gated() reads them.
LayerSpec linear(std::string name, std::string unit, Size input, ParameterSpec kernel,
                 Size gates = 1);

/// y = x table^T, with the table (vocab, width) of an embedding, layer number `tied_to`. The layer
/// has no parameters of its own.
LayerSpec tied_linear(std::string name, std::string unit, Size input, Size tied_to, Size vocabulary,
                      Size width);

/// y = activation(x + bias), with bias (width), zero at first. `bias_axis` is the logical name of
/// the bias's dimension; without one there is no bias. `experts`: the columns are those of so many
/// experts, one after another; 0: of none.
LayerSpec pointwise(std::string name, std::string unit, Size input, Size width,
                    Activation activation, const std::optional<std::string>& bias_axis = {},
                    Size experts = 0, Size gates = 1);

/// y = a + b, where a residual block ends.
LayerSpec add(std::string name, std::string unit, Size a, Size b, Size width);

/// y = activation(a) b (Shazeer 2020) for pairs of columns (a, b) of x (rows, 2 width). `experts`:
/// as in pointwise().
LayerSpec gated(std::string name, std::string unit, Size input, Size width, Activation activation,
                Size experts = 0);

/// y = scale (x - mean) / sqrt(variance + epsilon) + bias for each row (Ba et al. 2016), with scale
/// (width), ones at first, and bias (width), zeros at first, if `bias`.
LayerSpec layer_norm(std::string name, std::string unit, Size input, Size width,
                     const std::string& logical_axis, double epsilon = 1e-5, bool bias = true);
/// y = scale x / sqrt(mean of x^2 + epsilon) for each row (Zhang and Sennrich 2019).
LayerSpec rms_norm(std::string name, std::string unit, Size input, Size width,
                   const std::string& logical_axis, double epsilon);
/// The same for the first of each `of_head` groups of head_width columns that each head has, with
/// one scale (head_width) for all heads (Henry et al. 2020). The other groups are copied.
LayerSpec head_norm(std::string name, std::string unit, Size input, Size heads, Size of_head,
                    Size head_width, double epsilon);

/// Rotates the first of each `of_head` groups of head_width columns of a head, and copies the
/// others: the pair of columns j and j + head_width / 2 turns by position * frequency of j (Su et
/// al. 2021).
LayerSpec rotary(std::string name, std::string unit, Size input, Size heads, Size of_head,
                 Size head_width, const Rope& rope);

/// y = table[x] + position. x is one column of class numbers in [0, vocabulary); a sample has
/// `context` rows. Parameters: "table" (vocabulary, width), drawn from `stream`, and "position"
/// (context, width), drawn from stream + 1, if `positions`. Another number gives NaN.
LayerSpec embedding(std::string name, std::string unit, Size vocabulary, Size context, Size width,
                    std::uint32_t stream, bool positions = true);

/// Causal self-attention (Vaswani et al. 2017). The input (rows, 3 heads head_width) has the
/// columns q, k and v of head after head. The output (rows, heads head_width) has the columns
/// softmax(q k^T / sqrt(head_width)) v of each head, in which a position sees itself and earlier
/// ones. Memory is linear in the number of positions.
LayerSpec causal_attention(std::string name, std::string unit, Size qkv, Size heads,
                           Size head_width);
/// The same for queries (rows, heads head_width) and keys and values (rows, 2 key_heads
/// head_width), k and v of head after head. heads / key_heads queries, one after another, share
/// keys and values (Ainslie et al. 2023). `positions`: of a sample.
LayerSpec grouped_attention(std::string name, std::string unit, Size queries, Size keys_values,
                            Size heads, Size key_heads, Size head_width, Size positions);
/// The keys and values (rows, 2 heads head_width) of the input of an attention layer, for other
/// ranks of `context`.
LayerSpec keys_values(const LayerSpec& attention);

/// The largest number of experts that a position chooses.
inline constexpr Size max_choices = 8;

/// The routing of a mixture of experts (Fedus et al. 2022). Turns logits (rows, experts) into
/// gates: the scores s of a row, its softmax or sigmoids, at the `top_k` largest of them, and 0
/// elsewhere. With `renormalize` they are divided by the sum of the chosen scores. An expert takes
/// the first `capacity` positions of a sample that choose it; the others are dropped, which makes
/// their gates 0. Forward adds for each sample, with t positions, to the loss sum balance_weight
/// experts sum_e (choices of e / (top_k t)) (sum over positions of p_e), with p the softmax, and
/// z_weight sum over positions of (log sum_e exp(logit_e))^2.
///
/// With bias_rate there is a parameter "bias" (experts), zeros at first: the largest s + bias are
/// chosen, which changes no gate otherwise (Wang et al. 2024). Its gradient is experts times the
/// choices of e less all choices, whose sign tells a load above the mean. It is a sum of integers,
/// so that its order does not matter up to 2^24 in float.
LayerSpec route(std::string name, std::string unit, Size logits, const Routing& routing);

/// Copies each row of x (rows, width) to a slot of every expert that takes it (GShard: Lepikhin et
/// al. 2021): those whose gates (rows, experts) are not 0. A sample of `positions` rows has
/// `capacity` rows of slots, (capacity, experts width), with the columns of expert after expert. An
/// expert's slots have the positions in order; the rest of them is 0. The gates get no gradient
/// here.
LayerSpec dispatch(std::string name, std::string unit, Size x, Size gates, Size width,
                   Size positions, const Routing& routing);

/// y = sum over a row's experts of gate times the row of its slot; `slots` and `gates` as in
/// dispatch(). A row that all experts drop is 0.
LayerSpec combine(std::string name, std::string unit, Size slots, Size gates, Size width,
                  Size positions, const Routing& routing);

/// A draw from the normal distribution that the outputs of two layers describe (Kingma and Welling
/// 2014): z = mean + exp(logvar / 2) eps, with eps standard normal. eps is a function of the seed,
/// the step, and the row and column in the global batch; backward draws it again. Forward adds beta
/// KL(N(mean, exp(logvar)) || N(0, 1)) = -beta/2 sum (1 + logvar - mean^2 - exp(logvar)) to the
/// loss sum.
LayerSpec reparameterize(std::string name, std::string unit, Size mean, Size logvar, Size width,
                         double beta, std::uint64_t seed);

/// Dimensions d of the domain of u.
inline constexpr Size jet_dimensions = 2;
/// Rows of a sample: u, its d derivatives u_i and its d second derivatives u_ii at a point of the
/// interior, and u at a point of the boundary.
inline constexpr Size jet_rows = 2 * jet_dimensions + 2;

/// Returns true if jet_activation() has the first three derivatives of an activation.
constexpr bool has_jets(Activation a) { return a == Activation::tanh || a == Activation::identity; }

/// y = activation(x + bias) for samples of jet_rows rows. With s = activation(x + bias) and its
/// derivatives s' and s'', the chain rule gives y = s, y_i = s' x_i and y_ii = s'' x_i^2 + s' x_ii.
/// The bias, as in pointwise(), is added to the two rows of u. `activation`: one that has_jets().
LayerSpec jet_activation(std::string name, std::string unit, Size input, Size width,
                         Activation activation, const std::optional<std::string>& bias_axis = {});

/// y(k) = (1 / n^2) sum over x of v(x) exp(-2 pi i k x / n) for the kept modes k. Turns the n n
/// rows of a sample, of `width` columns, into one row of num_modes() * 2 * width columns: mode
/// after mode with k1 slowest, and of each mode the real parts of all channels, then the imaginary
/// parts.
LayerSpec fourier(std::string name, std::string unit, Size input, const FourierGrid& grid);

/// y(k) = x(k) R(k) for each mode k: products of complex numbers, with the columns of fourier().
/// Parameter "modes" (num_modes(), 2 * width, width): the real parts of each R, above the imaginary
/// parts; at first uniform on [0, 1) / width^2, drawn from `stream`.
LayerSpec mode_product(std::string name, std::string unit, Size input, const FourierGrid& grid,
                       std::uint32_t stream);

/// v(x) = sum over the kept modes k of weight(k2) Re(y(k) exp(2 pi i k x / n)), the inverse of
/// fourier() for real fields that have no other modes. The weight is 2, because a mode also stands
/// for its conjugate, and 1 for k2 = 0 and k2 = n / 2.
LayerSpec inverse_fourier(std::string name, std::string unit, Size input, const FourierGrid& grid);

}  // namespace tessera
