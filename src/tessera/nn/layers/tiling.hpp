// SPDX-License-Identifier: Apache-2.0
// How layers divide products of small matrices. Kernels and plans use this description, so that a
// plan for another device has the launches and the scratch memory of that device.
#pragma once

#include <algorithm>

#include <tessera/base/device.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

struct Tiling {
  /// Limit on the elements that the matrices of one kind, of all samples, heads or modes that are
  /// multiplied at once, have in scratch memory.
  Size room;
  Size queries, keys;  ///< of a block of attention scores
  bool batches;        ///< one launch multiplies all matrices that are multiplied at once

  /// Returns how many of `count` samples, heads or modes, each with a matrix of so many elements in
  /// scratch memory, a layer multiplies at once.
  constexpr Size at_once(Size count, Size elements) const {
    return std::max<Size>(1, std::min(count, room / std::max<Size>(1, elements)));
  }
  /// Returns the launches of `count` products, of which `together` are multiplied at once.
  constexpr Size launches(Size count, Size together) const {
    return batches ? (count + together - 1) / together : count;
  }
};

/// Returns the tiling of a device. On a CPU, a block of scores with its operands, and a few
/// matrices, fit the second cache of a core. A GPU needs large products, and many small ones in a
/// launch. In a fixed order of sums, it multiplies one matrix after another (Gemm::any_stride).
constexpr Tiling tiling_of(Device device, bool fixed_order = false) {
  if (device == Device::cpu) return {1 << 15, 64, 512, false};
  return {1 << 24, 1024, 4096, !fixed_order};
}

}  // namespace tessera
