// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/nn/layer_spec.hpp>

namespace tessera {

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

}  // namespace tessera
