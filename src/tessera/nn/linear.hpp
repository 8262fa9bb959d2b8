// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/nn/layer_spec.hpp>

namespace tessera {

/// y = x kernel: kernel (in, out), drawn with fold_in(key(seed), stream). Along `model` it is
/// whole, column-parallel (the kernel's columns are split) or row-parallel (its rows).
LayerSpec linear(std::string name, std::string unit, Size input, ParameterSpec kernel);

}  // namespace tessera
