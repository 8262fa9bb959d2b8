// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>

namespace tessera {

/// A View as a transport sees it: `count` contiguous elements of one type. In a sum in a tree it is
/// the first of several such rows, or of none (TreeTerms).
struct Buffer {
  void* data = nullptr;
  Size count = 0;
  DType type = DType::float32;
  bool host_accessible = true;
  bool contiguous = true;
  bool needs_fence = false;  ///< kernels that write it may still be running
  Size rows = 1;
  Size stride = 0;  ///< elements from one row to the next

  Size bytes() const { return count * size_of(type); }  ///< of a row
  /// Address of element `offset`.
  void* at(Size offset) const { return static_cast<char*>(data) + offset * size_of(type); }
  Buffer slice(Size offset, Size length) const {
    Buffer part = *this;
    part.data = at(offset);
    part.count = length;
    return part;
  }
};

/// Takes count, type and address from the View. A View of at most one element counts as contiguous.
template <class View>
Buffer buffer_of(const View& view) {
  static_assert(Kokkos::is_view<View>::value, "communicators move Kokkos Views");
  using Element = typename View::non_const_value_type;
  using Memory = typename View::memory_space;
  Buffer buffer;
  buffer.data = const_cast<Element*>(view.data());
  buffer.count = static_cast<Size>(view.size());
  buffer.type = dtype_of<Element>();
  buffer.host_accessible = Kokkos::SpaceAccessibility<Kokkos::HostSpace, Memory>::accessible;
  buffer.contiguous = view.size() <= 1 || view.span_is_contiguous();
  buffer.needs_fence = !std::is_same_v<Memory, Kokkos::HostSpace>;
  return buffer;
}

/// Copies `from` to `to`, which has as many bytes, or the rows that both have, and waits, unless
/// both are in device memory and the order of kernels is enough. Does nothing if both are the same
/// memory.
void copy(const Buffer& from, const Buffer& to, bool waits = true);

/// Returns whether the two have a byte in common.
inline bool overlap(const Buffer& a, const Buffer& b) {
  if (a.count == 0 || b.count == 0) return false;
  return a.data < b.at(b.count) && b.data < a.at(a.count);
}

}  // namespace tessera
