// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/nn/fourier.hpp>

namespace tessera {

/// y(k) = x(k) R(k) for each mode k, of complex numbers: rows of fourier()'s columns to rows of the
/// same. Parameter "modes" (kept(), 2 * width, width): of each mode the real parts of R, above the
/// imaginary ones; uniform on [0, 1) / width^2 at first, drawn from `stream`. Along `model` a rank
/// has R of its own modes, which is never gathered there.
LayerSpec mode_product(std::string name, std::string unit, Size input, const FourierGrid& grid,
                       std::uint32_t stream);

}  // namespace tessera
