// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/for_each.hpp>
#include <tessera/nn/layers/layer_spec.hpp>

namespace tessera::detail {

/// The rows of whole samples as ranks of `context` gather them: those of one part of the share
/// after another, in each part those of one sample after another.
struct SharedRows {
  SplitPart share;
  Size samples;

  /// `positions`: of a sample, if ranks do not share them.
  SharedRows(const LayerSpec& layer, Size positions, Size of_samples)
      : share(layer.share.parts > 1 ? layer.share : SplitPart{{positions}}), samples(of_samples) {}

  /// Calls f(row) for the positions of a sample in their order.
  template <class F>
  KOKKOS_INLINE_FUNCTION void for_each_position(Size sample, const F& f) const {
    for (Size i = 0; i < 2 * share.parts; ++i) {
      const Size number = i < share.parts ? 0 : 1, part = number ? 2 * share.parts - 1 - i : i;
      const Range of_part = share.place(part), run = share.run(part, number);
      const Size first = samples * of_part.begin + sample * of_part.count +
                         (number ? of_part.count - run.count : 0);
      for (Size row = first; row < first + run.count; ++row) f(row);
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
