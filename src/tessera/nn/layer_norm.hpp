// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/nn/layer_spec.hpp>

namespace tessera {

inline constexpr double layer_norm_epsilon = 1e-5;  ///< added to the variance

/// y = scale (x - mean) / sqrt(variance + epsilon) + bias along each row (Ba et al. 2016): scale
/// and bias (width), ones and zeros at first. Along `model` rows may be split, columns not.
LayerSpec layer_norm(std::string name, std::string unit, Size input, Size width,
                     const std::string& logical_axis);

}  // namespace tessera
