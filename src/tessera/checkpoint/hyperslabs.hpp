// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/io/hdf5_file.hpp>
#include <tessera/tensor/global_index.hpp>

namespace tessera {

/// Returns a range of a block's elements, in row-major order, as hyperslabs of the whole tensor:
/// the fewest possible, at most 2 n - 1 in n dimensions, in ascending order. A flat shard of a
/// matrix, for example, is the end of a row, whole rows and the beginning of a row.
std::vector<Hyperslab> hyperslabs_of(const Piece& block, Range elements);

/// Calls f(first, place, count) for each run of elements of the range that are contiguous in the
/// whole tensor. `first` is the index of the run in the block, `place` its index in the tensor.
template <class F>
void for_each_run(const Shape& whole, const Piece& block, Range elements, const F& f) {
  Size length = 1;  // of a whole run
  for (std::size_t d = whole.size(); d-- > 0;) {
    length *= block.extent[d];
    if (block.extent[d] != whole[d]) break;
  }
  const GlobalIndex place_of(whole, block);
  for (Size first = elements.begin; first < elements.end();) {
    const Size end = std::min(elements.end(), (first / length + 1) * length);
    f(first, place_of(first), end - first);
    first = end;
  }
}

}  // namespace tessera
