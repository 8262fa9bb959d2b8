// SPDX-License-Identifier: Apache-2.0
// The order of the sums of products, and what plans know about it.
#pragma once

#include <algorithm>

#include <tessera/base/pair_tree.hpp>
#include <tessera/base/split.hpp>
#include <tessera/nn/products/matmul_precision.hpp>

namespace tessera {

/// The blocks of the sums over k, in an order that does not depend on the mesh: the blocks `own` of
/// nested_split(n, blocks, b). Each is summed by itself; then the sums are added pairwise
/// (pair_tree.hpp). No block at all gives -0, which changes no sum.
struct SumBlocks {
  Size n = 0;  ///< indices of all ranks; 0: k is one block
  Size blocks = 1;
  Range own{0, 1};  ///< a power of two of blocks, or none
  Size unit = 1;    ///< terms of an index

  /// Returns the terms of all own blocks.
  KOKKOS_FUNCTION constexpr Size terms() const { return begin_of(own.count); }
  /// Returns the terms of one of the own blocks.
  KOKKOS_FUNCTION constexpr Range terms(Size block) const {
    return {begin_of(block), begin_of(block + 1) - begin_of(block)};
  }

 private:
  KOKKOS_FUNCTION constexpr Size begin_of(Size block) const {
    if (blocks == 1) return block * n * unit;
    return nested_split(n, blocks, Range{own.begin, block}).count * unit;
  }
};

/// The blocks of sums over the columns of a layer's inputs and of its output.
struct LayerBlocks {
  SumBlocks in{}, out{};
};

/// Returns the scratch memory of a product in a fixed order on a host. `converts`: its operands are
/// widened, rounded or packed in blocks of 32 numbers of 16 bits. `blocks`: SumBlocks::own.
inline constexpr Size fixed_order_side = 480, fixed_order_terms = 256;  ///< of blocks of operands
constexpr MatmulScratch fixed_order_scratch(Size m, Size n, Size k, bool converts, Size blocks) {
  constexpr Size tile = 96;  // a multiple of the sides of all tiles
  const auto side = [](Size x) { return std::min(fixed_order_side, (x + tile - 1) / tile * tile); };
  const Size terms = std::min(fixed_order_terms, converts ? (k + 15) / 16 * 16 : k),
             panel = std::max(side(m), side(n)) * terms;
  return {converts ? panel : 0, panel, (tree_levels(blocks) + 1) * side(m) * side(n)};
}

}  // namespace tessera
