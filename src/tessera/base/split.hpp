// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <tessera/base/types.hpp>

namespace tessera {

/// The indices [begin, begin + count).
struct Range {
  Size begin = 0;
  Size count = 0;
  KOKKOS_FUNCTION constexpr Size end() const { return begin + count; }
  friend constexpr bool operator==(const Range&, const Range&) = default;
};

/// Returns part i of n items split into `parts` parts. The first n mod parts parts hold one more
/// item. Parts may be empty.
KOKKOS_FUNCTION constexpr Range balanced_split(Size n, Size parts, Size i) {
  const Size base = n / parts;
  const Size extra = n % parts;
  return {i * base + (i < extra ? i : extra), base + (i < extra ? 1 : 0)};
}

/// Returns part b of n items split into `blocks` blocks, a power of two, such that each block of a
/// smaller power of two of blocks consists of whole blocks.
KOKKOS_FUNCTION constexpr Range nested_split(Size n, Size blocks, Size b) {
  const Size begin = (n * b + blocks - 1) / blocks;
  return {begin, (n * (b + 1) + blocks - 1) / blocks - begin};
}

/// How indices are split into parts: balanced, by whole units. With zigzag, a part has two runs of
/// units: the indices are cut into the first halves of all parts, in their order, and the second
/// halves in reverse order. Under a causal mask such parts of positions are equal work.
struct Split {
  Size units = 0;  ///< units of all parts
  Size parts = 1;
  Size unit = 1;  ///< indices of a unit, which stay together
  bool zigzag = false;

  KOKKOS_FUNCTION constexpr Size total() const { return units * unit; }
  /// Returns the place of a part where the parts lie one after another.
  KOKKOS_FUNCTION constexpr Range place(Size part) const {
    const Range of_units = balanced_split(units, parts, part);
    return {of_units.begin * unit, of_units.count * unit};
  }
  KOKKOS_FUNCTION constexpr Size count(Size part) const { return place(part).count; }
  /// Returns run 0 or run 1 of the indices of a part. Only zigzag has a second run.
  KOKKOS_FUNCTION constexpr Range run(Size part, Size number) const {
    if (!zigzag) return number == 0 ? place(part) : Range{};
    const Size base = units / parts, larger = units % parts, n = base + (part < larger ? 1 : 0);
    if (number == 0) return {halves(part, base, larger, 1) * unit, (n + 1) / 2 * unit};
    return {(units - halves(part + 1, base, larger, 0)) * unit, n / 2 * unit};
  }

 private:
  /// Returns the units in a half of each of the first parts: the larger half if `up` is 1.
  KOKKOS_FUNCTION static constexpr Size halves(Size first, Size base, Size larger, Size up) {
    const Size longer = first < larger ? first : larger;
    return longer * ((base + 1 + up) / 2) + (first - longer) * ((base + up) / 2);
  }
};

/// One part of a split, such as that of a rank.
struct SplitPart : Split {
  Size part = 0;
  KOKKOS_FUNCTION constexpr Size own_count() const { return count(part); }
  KOKKOS_FUNCTION constexpr Range own_run(Size number) const { return run(part, number); }
};

}  // namespace tessera
