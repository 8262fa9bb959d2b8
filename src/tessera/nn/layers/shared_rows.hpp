// SPDX-License-Identifier: Apache-2.0
// The positions that rows of a matrix have if ranks of `context` share those of each sample.
#pragma once

#include <Kokkos_Macros.hpp>

#include <tessera/nn/layers/layer_spec.hpp>

namespace tessera::detail {

/// Returns the rank's part of the `positions` positions that a layer reads or writes: all of them
/// if ranks do not share them.
inline SplitPart share_of(const LayerSpec& layer, Size positions) {
  return layer.share.parts > 1 || layer.share.total() == positions ? layer.share
                                                                   : SplitPart{{positions}};
}

/// The positions of the rank's own rows of a sample: two runs, or one if they are neighbours.
struct OwnRuns {
  Range first, second;

  KOKKOS_INLINE_FUNCTION explicit OwnRuns(const SplitPart& share)
      : first(share.own_run(0)), second(share.own_run(1)) {
    if (first.end() != second.begin) return;
    first.count += second.count;
    second = {};
  }

  KOKKOS_INLINE_FUNCTION Size count() const { return first.count + second.count; }
  KOKKOS_INLINE_FUNCTION Size of(Size row) const {
    return row < first.count ? first.begin + row : second.begin + row - first.count;
  }
  /// Returns the row of a position; -1 if another rank has it.
  KOKKOS_INLINE_FUNCTION Size row_of(Size position) const {
    const Size a = position - first.begin, b = position - second.begin;
    if (a >= 0 && a < first.count) return a;
    return b >= 0 && b < second.count ? first.count + b : -1;
  }
};

/// Calls f(positions, rows) for the runs of a block (Split::blocks) in the rank's rows of some
/// samples. Positions are counted through all samples.
template <class F>
void for_each_run(const SplitPart& share, Size block, Size samples, const F& f) {
  const OwnRuns own(share);
  for (Size s = 0; s < samples; ++s)
    for (const Size number : {0, 1})
      if (const Range run = share.run_of({block, 1}, number); run.count > 0)
        f(Range{s * share.total() + run.begin, run.count},
          Range{s * own.count() + own.row_of(run.begin), run.count});
}

/// Rows of a sample that are consecutive positions; none if the count is 0.
struct SampleRows : Range {
  Size next;      ///< rows to those of the next sample
  Size position;  ///< of the first row

  SampleRows some(Size from, Size n) const { return {{begin + from, n}, next, position + from}; }
};

/// The rows of whole samples as ranks of `context` gather them: those of one part of the share
/// after another, in each part those of one sample after another.
struct SharedRows {
  SplitPart share;
  Size samples;
  Range parts;  ///< whose rows are there

  /// Makes the rows of all parts if `positions`, those of a sample, are all; else the rank's own.
  SharedRows(const LayerSpec& layer, Size positions, Size of_samples)
      : share(share_of(layer, positions)),
        samples(of_samples),
        parts(positions == share.total() ? Range{0, share.parts} : Range{share.part, 1}) {}

  /// Returns the blocks of the share whose rows are there; without blocks, the parts.
  KOKKOS_INLINE_FUNCTION Range blocks() const {
    if (share.blocks == 0) return parts;
    const Size begin = share.blocks_of(parts.begin).begin;
    return {begin, share.blocks_of(parts.end() - 1).end() - begin};
  }
  KOKKOS_INLINE_FUNCTION Size runs() const { return 2 * blocks().count; }
  /// Returns a run of a block. The runs are in the order of positions: the second ones go back.
  KOKKOS_INLINE_FUNCTION SampleRows run(Size sample, Size number) const {
    const Range all = blocks();
    const Size second = number < all.count ? 0 : 1;
    const Size block = all.begin + (second == 0 ? number : runs() - 1 - number);
    Size part = share.blocks > 0 ? parts.begin : block;
    while (share.blocks > 0 && share.blocks_of(part).end() <= block) ++part;
    const Range place = share.place(part), of_part = share.run(part, second),
                own = share.blocks > 0 ? share.run_of({block, 1}, second) : of_part;
    const Size first = samples * (place.begin - share.place(parts.begin).begin) +
                       sample * place.count + second * (place.count - of_part.count);
    return {{first + own.begin - of_part.begin, own.count}, place.count, own.begin};
  }
  /// Calls f(row) for the positions of a sample in their order.
  template <class F>
  KOKKOS_INLINE_FUNCTION void for_each_position(Size sample, const F& f) const {
    for (Size i = 0; i < runs(); ++i) {
      const SampleRows of = run(sample, i);
      for (Size row = of.begin; row < of.end(); ++row) f(row);
    }
  }
  KOKKOS_INLINE_FUNCTION Size sample_of(Size row) const {
    for (Size part = 0; part < share.parts; ++part) {
      const Range of_part = share.place(part);
      if (row < samples * of_part.end()) return (row - samples * of_part.begin) / of_part.count;
    }
    return 0;
  }
  /// Returns the number of a rank's own row among all.
  KOKKOS_INLINE_FUNCTION Size of_own(Size row) const {
    return samples * share.place(share.part).begin + row;
  }
  KOKKOS_INLINE_FUNCTION Size sample_of_own(Size row) const { return row / share.own_count(); }
};

}  // namespace tessera::detail
