// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/base/view.hpp>
#include <tessera/tensor/placement.hpp>

namespace tessera {

/// A row-major tensor (outer, n, inner) whose middle dimension is cut into balanced parts. Whole
/// memory is (outer, n, inner). Packed memory is part after part, each (outer, n_p, inner).
struct Parts {
  Size outer = 1;
  Size n = 1;
  Size inner = 1;
  Size count = 1;

  Parts(const Shape& shape, int dim, Size parts);

  Size elements() const { return outer * n * inner; }
  /// Returns the elements of one part.
  Size part_elements(Size part) const {
    return outer * balanced_split(n, count, part).count * inner;
  }
  Range all() const { return {0, count}; }
  /// Returns the elements of every part, as the counts of a collective.
  std::vector<Size> part_counts() const;
  /// Returns true if whole and packed memory have the same order.
  bool contiguous() const { return outer <= 1; }
};

/// Copies the parts `which` of whole to packed memory; unpack() copies them back. Allocate nothing.
/// Defined for the element types of communicators.
template <class T>
void pack(const Vector<T>& whole, const Parts& parts, const Vector<T>& packed, Range which);
template <class T>
void unpack(const Vector<T>& packed, const Parts& parts, const Vector<T>& whole, Range which);

}  // namespace tessera
