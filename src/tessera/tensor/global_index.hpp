// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <tessera/tensor/piece.hpp>

namespace tessera {

inline constexpr std::size_t max_tensor_rank = 4;

/// Maps a flat index in a rank's piece to the flat index in the whole tensor. Row-major, for at
/// most max_tensor_rank dimensions.
struct GlobalIndex {
  Size extent[max_tensor_rank];
  Size offset[max_tensor_rank];
  Size stride[max_tensor_rank];

  GlobalIndex(const Shape& global_shape, const Piece& piece);

  KOKKOS_INLINE_FUNCTION Size operator()(Size i) const {
    Size global = 0;
    for (int d = static_cast<int>(max_tensor_rank) - 1; d >= 0; --d) {
      const Size rest = i / extent[d];
      global += (offset[d] + i - rest * extent[d]) * stride[d];
      i = rest;
    }
    return global;
  }
};

}  // namespace tessera
