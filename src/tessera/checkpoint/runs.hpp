// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <tessera/base/split.hpp>
#include <tessera/tensor/piece.hpp>

namespace tessera {

/// Calls f(first, place, count) for each run of elements that are contiguous in the whole tensor.
/// The elements are `elements` of a piece, in row-major order. `first` is the index of the run in
/// the piece, `place` its index in the tensor. Runs ascend.
template <class F>
void for_each_run(const Shape& whole, const Piece& piece, Range elements, const F& f) {
  Size length = 1;  // of a whole run
  for (std::size_t d = whole.size(); d-- > 0;) {
    length *= piece.extent[d];
    if (piece.extent[d] != whole[d]) break;
  }
  const GlobalIndex place_of(whole, piece);
  for (Size first = elements.begin; first < elements.end();) {
    const Size end = std::min(elements.end(), (first / length + 1) * length);
    f(first, place_of(first), end - first);
    first = end;
  }
}

}  // namespace tessera
