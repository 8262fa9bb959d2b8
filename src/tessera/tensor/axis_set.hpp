// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace tessera {

/// A set of axes of a mesh, given by their positions. The ranks of a call differ along these axes
/// only. Iteration visits the axes in the order of the mesh.
class AxisSet {
 public:
  /// The largest number of axes of a mesh, without MeshShape::repeats().
  static constexpr std::size_t most_axes = 63;

  constexpr AxisSet() = default;
  constexpr AxisSet(std::initializer_list<std::size_t> axes) {
    for (const std::size_t axis : axes) bits_ |= std::uint64_t{1} << axis;
  }

  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool contains(std::size_t axis) const { return (bits_ >> axis & 1) != 0; }

  /// The union, the intersection, and the axes of `a` that are not in `b`.
  friend constexpr AxisSet operator|(AxisSet a, AxisSet b) { return AxisSet(a.bits_ | b.bits_); }
  friend constexpr AxisSet operator&(AxisSet a, AxisSet b) { return AxisSet(a.bits_ & b.bits_); }
  friend constexpr AxisSet operator-(AxisSet a, AxisSet b) { return AxisSet(a.bits_ & ~b.bits_); }

  auto operator<=>(const AxisSet&) const = default;

  class Iterator {
   public:
    explicit constexpr Iterator(std::uint64_t rest) : rest_(rest) {}
    constexpr std::size_t operator*() const {
      return static_cast<std::size_t>(std::countr_zero(rest_));
    }
    constexpr Iterator& operator++() {
      rest_ &= rest_ - 1;  // without the lowest bit
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    std::uint64_t rest_;
  };
  constexpr Iterator begin() const { return Iterator(bits_); }
  constexpr Iterator end() const { return Iterator(0); }

 private:
  explicit constexpr AxisSet(std::uint64_t bits) : bits_(bits) {}

  std::uint64_t bits_ = 0;
};

}  // namespace tessera
