// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/nn/fourier.hpp>

namespace tessera {

/// v(x) = sum over the kept modes of weight(k2) Re(y(k) exp(2 pi i k x / n)), where a mode stands
/// for its conjugate too: the weight is 1 for k2 = 0 and n / 2, else 2. One row of fourier()'s
/// columns to (n n, width): what a real field was made of, if it has no other modes. Along `model`
/// a rank adds up its own modes: the output is a sum.
LayerSpec inverse_fourier(std::string name, std::string unit, Size input, const FourierGrid& grid);

}  // namespace tessera
