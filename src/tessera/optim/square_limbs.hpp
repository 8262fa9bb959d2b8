// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>

namespace tessera {

/// The number of integers into which ExactSquares cuts a square.
inline constexpr Size square_limbs = 3;
/// The elements of the Views in which it sums them.
inline constexpr Size square_sums = square_limbs + 1;

}  // namespace tessera
