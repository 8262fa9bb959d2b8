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
  /// The same for every part: what communicators call counts.
  std::vector<Size> part_counts() const;
  /// Whole and packed are the same memory layout: the parts are contiguous as they are.
  bool contiguous() const { return outer <= 1; }
};

/// packed = whole, in the order of the parts. Defined for the element types of communicators.
template <class T>
void pack(const Vector<T>& whole, const Parts& parts, const Vector<T>& packed);
/// whole = packed.
template <class T>
void unpack(const Vector<T>& packed, const Parts& parts, const Vector<T>& whole);
/// piece = one part of whole; an alias of `whole` where the part is contiguous.
template <class T>
Vector<T> take_part(const Vector<T>& whole, const Parts& parts, Size part);
/// piece = one part of whole, in memory of its own; allocates nothing.
template <class T>
void copy_part(const Vector<T>& whole, const Parts& parts, Size part, const Vector<T>& piece);
/// One part of whole = piece.
template <class T>
void put_part(const Vector<T>& piece, const Parts& parts, Size part, const Vector<T>& whole);

}  // namespace tessera
