// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/base/view.hpp>
#include <tessera/mesh/placement.hpp>

namespace tessera {

/// A row-major tensor around one dimension, (outer, n, inner), whose dimension is cut into balanced
/// parts. Whole: (outer, n, inner). Packed: part after part, each (outer, n_p, inner).
struct Parts {
  Size outer = 1;
  Size n = 1;
  Size inner = 1;
  Size count = 1;

  Parts(const Shape& shape, int dim, Size parts);

  Size elements() const { return outer * n * inner; }
  /// Elements of one part.
  Size part_elements(Size part) const {
    return outer * balanced_split(n, count, part).count * inner;
  }
  Range all() const { return {0, count}; }
  /// The same for every part: what communicators call counts.
  std::vector<Size> part_counts() const;
  /// Whole and packed are the same memory layout: the parts are contiguous as they are.
  bool contiguous() const { return outer <= 1; }
};

/// packed = these parts of whole, in their order. Allocates nothing. Defined for the element types
/// of communicators.
template <class T>
void pack(const Vector<T>& whole, const Parts& parts, const Vector<T>& packed, Range which);
/// These parts of whole = packed.
template <class T>
void unpack(const Vector<T>& packed, const Parts& parts, const Vector<T>& whole, Range which);

}  // namespace tessera
