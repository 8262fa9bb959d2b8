// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/io/hdf5_file.hpp>
#include <tessera/mesh/global_index.hpp>

namespace tessera {

/// Elements of a block, a range of them in row-major order, as boxes of the whole tensor: as few as
/// can be, at most 2 n - 1 in n dimensions, in ascending order. Where a flat shard cuts a tensor
/// anywhere, that is the end of a row, whole rows and the beginning of another one.
std::vector<Hyperslab> boxes_of(const Block& block, Range elements);

/// Calls f(first, place, count) for runs of such elements that are one behind the other in the
/// whole tensor as well: `first` counts in the block, `place` in the tensor.
template <class F>
void for_each_run(const Shape& whole, const Block& block, Range elements, const F& f) {
  Size length = 1;  // of a run that begins at the begin of one
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
