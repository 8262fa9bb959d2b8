// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/nn/layer_spec.hpp>

namespace tessera {

/// Dimensions d of the space on which u lives.
inline constexpr Size jet_dimensions = 2;
/// Rows of a sample: u, its derivatives u_i and its second derivatives u_ii at one point, and u at
/// another point, which is on the border.
inline constexpr Size jet_rows = 2 * jet_dimensions + 2;

/// Whether jets know the first three derivatives of an activation.
constexpr bool has_jets(Activation a) { return a == Activation::tanh || a == Activation::identity; }

/// y = activation(x + bias) where x and y have the rows above: with z = x + bias, s = activation(z)
/// and s', s'' its derivatives there, y = s, y_i = s' x_i and y_ii = s'' x_i^2 + s' x_ii, which is
/// the chain rule. A bias (out), zero at first, is added to u in both places; it moves no
/// derivative. `activation`: one that has_jets(). Along `model` it lies as its input does.
LayerSpec jet_activation(std::string name, std::string unit, Size input, Size width,
                         Activation activation);
/// The same with a bias, whose dimension has the given logical name.
LayerSpec jet_activation(std::string name, std::string unit, Size input, Size width,
                         Activation activation, std::string logical_axis);

}  // namespace tessera
