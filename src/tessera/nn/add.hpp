// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/nn/layer_spec.hpp>

namespace tessera {

/// y = a + b, as where a residual joins its block. Along `model` any layout goes.
LayerSpec add(std::string name, std::string unit, Size a, Size b, Size width);

}  // namespace tessera
