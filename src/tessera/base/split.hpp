// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>

#include <Kokkos_Macros.hpp>

#include <tessera/base/types.hpp>

namespace tessera {

/// The indices [begin, begin + count).
struct Range {
  Size begin = 0;
  Size count = 0;
  KOKKOS_FUNCTION constexpr Size end() const { return begin + count; }
  constexpr auto operator<=>(const Range&) const = default;
};

/// The rows that a rank of `context` holds: two runs of the positions of each sample.
struct HeldRows {
  Size positions = 0;  ///< of a sample; 0: all rows are held
  Range first{}, second{};

  KOKKOS_FUNCTION constexpr Size of_sample() const { return first.count + second.count; }
  /// Returns how many of the first rows of all are held.
  KOKKOS_FUNCTION constexpr Size among(Size rows) const {
    if (positions == 0) return rows;
    const Size rest = rows % positions;
    return rows / positions * of_sample() + among(first, rest) + among(second, rest);
  }
  constexpr auto operator<=>(const HeldRows&) const = default;

 private:
  KOKKOS_FUNCTION static constexpr Size among(Range run, Size end) {
    const Size before = end - run.begin;
    return before < 0 ? 0 : before < run.count ? before : run.count;
  }
};

/// Returns part i of n items split into `parts` parts. The first n mod parts parts hold one more
/// item. Parts may be empty.
KOKKOS_FUNCTION constexpr Range balanced_split(Size n, Size parts, Size i) {
  const Size base = n / parts;
  const Size extra = n % parts;
  return {i * base + (i < extra ? i : extra), base + (i < extra ? 1 : 0)};
}

/// Returns block `block` of n items. Splits into 1, 2, 4, ... blocks nest for every n. Blocks may
/// be empty, and none is larger than the first.
KOKKOS_FUNCTION constexpr Range nested_split(Size n, Size blocks, Size block) {
  const Size begin = (n * block + blocks - 1) / blocks;
  return {begin, (n * (block + 1) + blocks - 1) / blocks - begin};
}
/// Returns the items of consecutive blocks.
KOKKOS_FUNCTION constexpr Range nested_split(Size n, Size blocks, Range of) {
  const Size begin = nested_split(n, blocks, of.begin).begin;
  return {begin, nested_split(n, blocks, of.end()).begin - begin};
}

/// How indices are split into parts: balanced, by whole units. With `blocks`, a power of two, parts
/// are runs of nested_split() blocks that are nodes of a tree over the blocks: there are as many
/// places as the next power of two of parts, and a part has one or two of them. With zigzag, a part
/// has two runs of units: the indices are cut into the first halves of all parts, in their order,
/// and the second halves in reverse order. Under a causal mask such parts of positions are equal
/// work.
struct Split {
  Size units = 0;  ///< units of all parts
  Size parts = 1;
  Size unit = 1;  ///< indices of a unit, which stay together
  bool zigzag = false;
  Size blocks = 0;  ///< that parts consist of; 0: parts are balanced
  Size filled = 0;  ///< the parts that may have indices, the first ones; 0: all
  HeldRows held{};  ///< units are rows, and blocks are those of the rows of all ranks of `context`

  KOKKOS_FUNCTION constexpr Size total() const { return units * unit; }
  /// Returns the blocks of a part. The first part has the most, and a part may have none.
  KOKKOS_FUNCTION constexpr Range blocks_of(Size part) const {
    Size places = 1;
    while (places < parts) places *= 2;
    return nested_split(blocks, places, balanced_split(places, parts, part));
  }
  /// Returns the place of a part where the parts lie one after another.
  KOKKOS_FUNCTION constexpr Range place(Size part) const {
    if (filled > 0 && part >= filled) return {total(), 0};
    if (held.positions > 0) {
      const Size samples = units / (held.of_sample() > 0 ? held.of_sample() : 1);
      const Range rows = nested_split(samples * held.positions, blocks, blocks_of(part));
      return {held.among(rows.begin), held.among(rows.end()) - held.among(rows.begin)};
    }
    const Range of_units = blocks > 0 ? nested_split(units, blocks, blocks_of(part))
                                      : balanced_split(units, filled > 0 ? filled : parts, part);
    return {of_units.begin * unit, of_units.count * unit};
  }
  KOKKOS_FUNCTION constexpr Size count(Size part) const { return place(part).count; }
  /// Returns true if sums add several blocks, or if a part has none.
  KOKKOS_FUNCTION constexpr bool has_blocks() const {
    return blocks > 1 || (blocks == 1 && parts > 1);
  }
  /// Returns the indices of a block.
  KOKKOS_FUNCTION constexpr Range block(Size number) const {
    const Range of_units = nested_split(units, blocks, number);
    return {of_units.begin * unit, of_units.count * unit};
  }
  /// Returns run 0 or run 1 of the indices of a part. Only zigzag has a second run.
  KOKKOS_FUNCTION constexpr Range run(Size part, Size number) const {
    if (!zigzag) return number == 0 ? place(part) : Range{};
    if (blocks > 0) return run_of(blocks_of(part), number);
    const Size base = units / parts, larger = units % parts, n = base + (part < larger ? 1 : 0);
    if (number == 0) return {halves(part, base, larger, 1) * unit, (n + 1) / 2 * unit};
    return {(units - halves(part + 1, base, larger, 0)) * unit, n / 2 * unit};
  }
  /// Returns run 0 or run 1 of the indices of some blocks. With zigzag, a block has two.
  KOKKOS_FUNCTION constexpr Range run_of(Range of, Size number) const {
    Size before = 0, own = 0;  // units
    for (Size b = 0; b < of.end(); ++b) {
      const Size all = nested_split(units, blocks, b).count;
      (b < of.begin ? before : own) += zigzag ? (all + 1 - number) / 2 : all * (1 - number);
    }
    return {(number == 0 ? before : units - before - own) * unit, own * unit};
  }

  friend constexpr bool operator==(const Split&, const Split&) = default;

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
  /// Returns the rows of samples with the part of their positions.
  KOKKOS_FUNCTION constexpr HeldRows rows() const { return {total(), own_run(0), own_run(1)}; }
  KOKKOS_FUNCTION constexpr Size own_count() const { return count(part); }
  KOKKOS_FUNCTION constexpr Range own_run(Size number) const { return run(part, number); }
};

}  // namespace tessera
