// SPDX-License-Identifier: Apache-2.0
// The modes and the points of a grid that a rank has.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <tessera/base/pair_tree.hpp>
#include <tessera/nn/layers/shared_rows.hpp>

namespace tessera::detail {

/// The rows of an n x n grid that a rank has, whole or in part: first those of its first run of
/// positions, then those of its second.
struct GridRows : OwnRuns {
  /// Points x2 of a row, which are consecutive positions of the rank.
  struct Part {
    Range x2;
    Size position;  ///< the first of these positions
  };

  GridRows(const SplitPart& share, Size points) : OwnRuns(share), n(points) {}

  Size n;

  KOKKOS_INLINE_FUNCTION Size rows_of(const Range& run) const {
    return run.count == 0 ? 0 : (run.begin + run.count - 1) / n - run.begin / n + 1;
  }
  KOKKOS_INLINE_FUNCTION Size rows() const { return rows_of(first) + rows_of(second); }
  KOKKOS_INLINE_FUNCTION Size x1(Size i) const {
    const Size before = rows_of(first);
    return i < before ? first.begin / n + i : second.begin / n + i - before;
  }

  bool is_whole() const { return count() == n * n; }
  Part part(Size i) const {
    const bool is_first = i < rows_of(first);
    const Range& run = is_first ? first : second;
    const Size row = x1(i) * n, begin = std::max(run.begin, row),
               end = std::min(run.end(), row + n);
    return {{begin - row, end - begin}, begin};
  }
};

/// Fields (samples * n * n, width) on a grid and a rank's modes (samples, count * modes * 2 *
/// width) of them. The columns of the modes are sorted by frequency k1 of the first dimension, then
/// by k2 of the second; each mode has the real parts of all channels, then the imaginary parts. k1
/// runs over 0, ..., modes - 1, -modes, ..., -1; the rank has `count` of these from number `first`
/// on. k2 runs over 0, ..., modes - 1. A rank of `context` has only the rows of its share, and the
/// modes are sums over the ranks.
struct FourierModes {
  explicit FourierModes(const LayerSpec& layer)
      : n(layer.get<FourierGrid>().n),
        share(share_of(layer, n * n)),
        own(share),
        grid(share, n),
        modes(layer.size("m")),
        width(layer.size("c")),
        first(layer.part('q').begin),
        count(layer.part('q').count),
        tiling(layer.tiling) {}

  Size n;
  SplitPart share;
  OwnRuns own;    ///< the rank's points
  GridRows grid;  ///< those that are transformed: the rank's, or those of a block of them
  Size most_rows = grid.rows();
  Size modes, width;
  Size first, count;
  Tiling tiling;

  /// Returns the transform of the points of one block of the share (Split::blocks).
  FourierModes block(Size number) const {
    FourierModes of = *this;
    of.share = SplitPart{{share.units, share.blocks, 1, share.zigzag, share.blocks}, number};
    of.grid = GridRows(of.share, n);
    return of;
  }
  /// Returns the elements of the modes of some samples.
  Size of_modes(Size samples) const { return samples * count * group(); }

  /// Columns of one frequency k1.
  Size group() const { return 2 * modes * width; }

  bool is_negative(Size k) const { return first + k >= modes; }
  /// |k1| of the rank's k-th frequency.
  Size magnitude(Size k) const { return is_negative(k) ? 2 * modes - first - k : first + k; }
  /// The range of |k1| of some of the rank's frequencies. The sums for k1 and -k1 are conjugates,
  /// so one product makes both.
  Range magnitudes(Range of) const {
    Size least = modes, most = 0;
    for (Size k = of.begin; k < of.end(); ++k) {
      least = std::min(least, magnitude(k));
      most = std::max(most, magnitude(k));
    }
    return {least, std::max<Size>(0, most - least + 1)};
  }
  Range magnitudes() const { return magnitudes({0, count}); }

  /// Returns how many of some samples are transformed at once.
  Size samples_at_once(Size samples) const {
    return tiling.by_thread(samples, most_rows * group());
  }

  /// Elements of one sample between the products: the frequencies k2 of each row of the grid.
  Size between() const { return grid.rows() * group(); }
  /// Elements of the matrices of cosines and sines, of the samples between the products, and of
  /// their sums along the first dimension.
  Size scratch(Size samples) const {
    const Size sums = 2 * magnitudes().count;
    return sums * grid.rows() + 2 * modes * n +
           samples_at_once(samples) * (between() + sums * group());
  }
  /// Elements of the nodes of the tree over blocks of points, behind the scratch of the rank's
  /// points.
  Size nodes(Size samples) const {
    return share.has_blocks() ? (1 + tree_levels(share.blocks)) * of_modes(samples) : 0;
  }

  /// Returns the products of a transform to the modes, or of its transpose: one along the first
  /// dimension, and those of the rows of the grid.
  std::vector<GemmShape> products(Size samples, bool to_modes) const {
    if (to_modes && share.has_blocks() && share.parts != share.blocks) {
      std::vector<GemmShape> all;
      const Range blocks = share.blocks_of(share.part);
      for (Size b = blocks.begin; b < blocks.end(); ++b)
        for (const GemmShape& product : block(b).products(samples, true)) all.push_back(product);
      return all;
    }
    const Size each = tiling.launches(samples, samples_at_once(samples));
    std::vector<GemmShape> all;
    if (grid.rows() > 0)
      all.push_back({2 * magnitudes().count, group(), grid.rows(), samples, each});
    if (grid.is_whole())
      all.push_back({2 * modes, width, n, samples * n, tiling.batches ? each : each * n});
    for (Size i = 0, before = 0; i < grid.rows() && !grid.is_whole(); ++i) {
      const Size points = grid.part(i).x2.count;
      if (points == before) {
        all.back().times += samples;
        all.back().launches += each;
      } else {
        all.push_back({2 * modes, width, points, samples, each});
      }
      before = points;
    }
    for (GemmShape& product : all)
      if (!to_modes) std::swap(product.m, product.k);
    return all;
  }
};

}  // namespace tessera::detail
