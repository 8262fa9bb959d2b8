// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/nn/layer_spec.hpp>

namespace tessera {

/// y = activation(x + bias): bias (out), zero at first. Along `model` it lies as its input does.
LayerSpec pointwise(std::string name, std::string unit, Size input, Size width,
                    Activation activation);
/// The same with a bias, whose dimension has the given logical name.
LayerSpec pointwise(std::string name, std::string unit, Size input, Size width,
                    Activation activation, std::string logical_axis);

}  // namespace tessera
