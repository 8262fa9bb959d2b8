// SPDX-License-Identifier: Apache-2.0
// The Fourier transform from fields on a grid to their lowest modes, and its transpose. Both are
// products with matrices of cosines and sines: for few modes these are faster than a fast
// transform.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/base/pair_tree.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera::detail {

// Made once: launches allocate no memory for labels.
inline const std::string fourier_matrices_label = "tessera::fourier_matrices";
inline const std::string fourier_join_label = "tessera::fourier_join";

/// Fields (samples * n * n, width) on a grid and a rank's modes (samples, count * modes * 2 *
/// width) of them. The columns of the modes are sorted by frequency k1 of the first dimension, then
/// by k2 of the second; each mode has the real parts of all channels, then the imaginary parts. k1
/// runs over 0, ..., modes - 1, -modes, ..., -1; the rank has `count` of these from number `first`
/// on. k2 runs over 0, ..., modes - 1.
struct FourierModes {
  /// The modes in `columns` columns from `begin` on.
  FourierModes(const FourierGrid& grid, Size begin, Size columns)
      : n(grid.n),
        modes(grid.modes),
        width(grid.width),
        first(begin / group()),
        count(columns / group()),
        rest(begin % group() + columns % group()) {}

  Size n, modes, width;
  Size first, count;
  Size rest;  ///< columns that are not part of a whole frequency k1

  /// Columns of one frequency k1.
  Size group() const { return 2 * modes * width; }
  /// Returns true if the columns are those of whole frequencies k1.
  bool are_whole() const { return rest == 0; }

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
    return {least, most - least + 1};
  }
  Range magnitudes() const { return magnitudes({0, count}); }

  /// Elements of the three matrices and of one sample between the two products.
  Size scratch() const {
    const Size rows = 2 * magnitudes().count;
    return rows * n + 2 * (4 * modes * n) + rows * n * width;
  }

  std::vector<GemmShape> products_to_modes(Size samples) const {
    return {{2 * magnitudes().count, n * width, n, samples},
            {2 * modes, width, 2 * n, samples * count}};
  }
  std::vector<GemmShape> products_to_grid(Size samples) const {
    return {{2 * n, width, 2 * modes, samples * count},
            {n, n * width, 2 * magnitudes().count, samples}};
  }
};

/// Ranks of `model` have whole frequencies k1, with all k2.
inline ColumnGroups fourier_groups(const FourierGrid& grid) {
  return {2 * grid.modes * grid.width, "frequencies", "model.fno.modes", grid.modes};
}

/// Factor of every mode.
enum class FourierScale : std::uint8_t {
  mean,    ///< 1 / n^2: modes are means over the grid
  mirror,  ///< 1 for k2 = 0 and k2 = n / 2; 2 for the others, whose conjugates are not stored
};

/// Fills the two factors of exp(-i (k1 x1 + k2 x2)), with x in units of 2 pi / n. `along_first`,
/// (2 magnitudes, n), has the rows cos(k1 x1) and -sin(k1 x1) for k1 = least, least + 1, ....
/// `along_second` is two matrices (2 modes, 2 n), for k1 >= 0 and for k1 < 0. The first multiplies
/// the real and imaginary parts of that product by exp(-i k2 x2); the second multiplies those of
/// its conjugate.
template <class T>
struct FourierMatrices {
  T *along_first, *along_second;
  Size firsts;  ///< elements of along_first
  Size n, modes, least;
  FourierScale scale;

  KOKKOS_INLINE_FUNCTION void operator()(Size i) const {
    if (i < firsts) {
      const Size row = i / n;
      along_first[i] = static_cast<StateOf<T>>(element(least + row / 2, i % n, row % 2, 0));
    } else {
      const Size at = i - firsts, row = at / (2 * n) % (2 * modes), column = at % (2 * n);
      const Size k = row / 2, from = column / n;
      const bool conjugates = at >= 4 * modes * n;
      const double mirror = k == 0 || 2 * k == n ? 1 : 2, mean = 1 / static_cast<double>(n * n);
      const double factor =
          (scale == FourierScale::mean ? mean : mirror) * (conjugates && from == 1 ? -1 : 1);
      along_second[at] = static_cast<StateOf<T>>(factor * element(k, column % n, row % 2, from));
    }
  }

  /// The matrix element of a product with cos(k x) - i sin(k x): the contribution of part `from` of
  /// a number to part `to` of the result; 0 is the real part, 1 the imaginary part.
  KOKKOS_INLINE_FUNCTION double element(Size k, Size x, Size to, Size from) const {
    using std::cos;
    using std::sin;
    constexpr double two_pi = 6.28318530717958647693;
    const double angle = two_pi * static_cast<double>(k * x % n) / static_cast<double>(n);
    if (to == from) return cos(angle);
    return to == 0 ? sin(angle) : -sin(angle);
  }
};

template <class T>
class FourierTransform {
 public:
  /// Makes the matrices in the scratch memory of the call, in less time than one sample takes. Sums
  /// over frequencies are added in a tree over `blocks` balanced blocks of them, a power of two.
  FourierTransform(const LayerCall<T>& call, const FourierModes& of, FourierScale scale,
                   Size blocks)
      : gemm_(call.gemm),
        samples_(call.samples),
        of_(of),
        blocks_(blocks),
        magnitudes_(of.magnitudes()) {
    StateOf<T>* at = call.scratch.data();
    const auto take = [&](Size rows, Size columns) {
      return alias_matrix(reinterpret_cast<T*>(std::exchange(at, at + rows * columns)), rows,
                          columns);
    };
    const Size rows = 2 * magnitudes_.count;
    along_first_ = take(rows, of.n);
    along_second_ = take(2 * 2 * of.modes, 2 * of.n);
    between_ = take(rows, of.n * of.width);
    for_each(fourier_matrices_label, along_first_.span() + along_second_.span(),
             FourierMatrices<T>{along_first_.data(), along_second_.data(), rows * of.n, of.n,
                                of.modes, magnitudes_.begin, scale});
  }

  void to_modes(const Matrix<const T>& fields, const Matrix<T>& modes) const {
    for (Size s = 0; s < samples_; ++s)
      for (Size b = 0; b < blocks_; ++b) {
        const Range block = balanced_split(of_.count, blocks_, b), rows = rows_of_block(block);
        gemm_(Trans::no, Trans::no, rows_of(along_first_, rows), field(fields, s), 0,
              rows_of(between_, rows));
        for (Size k = block.begin; k < block.end(); ++k)
          gemm_(Trans::no, Trans::no, along_second(k), between(k), 0, frequency(modes, s, k));
      }
  }

  /// The transpose of to_modes(). Out: T or StateOf<T>.
  template <class Out>
  void to_grid(const Matrix<const T>& modes, const Matrix<Out>& fields) const {
    for (Size s = 0; s < samples_; ++s) {
      if (blocks_ == 1) {
        block_to_grid(modes, s, {0, of_.count}, field(fields, s));
        continue;
      }
      for (Size b = 0; b < blocks_; ++b) {
        block_to_grid(modes, s, balanced_split(of_.count, blocks_, b), node(b));
        join_complete_nodes({b, 1}, [&](Size to, Size from) {
          StateOf<T>* const sum = node(to).data();
          const StateOf<T>* const more = node(from).data();
          for_each(
              fourier_join_label, node(to).span(), KOKKOS_LAMBDA(Size i) { sum[i] += more[i]; });
        });
      }
      const StateOf<T>* const sum = node(0).data();
      Out* const out = field(fields, s).data();
      for_each(
          fourier_join_label, node(0).span(), KOKKOS_LAMBDA(Size i) { out[i] = sum[i]; });
    }
  }

 private:
  /// Sets a field to the contribution of a block of frequencies.
  template <class Out>
  void block_to_grid(const Matrix<const T>& modes, Size s, Range block,
                     const Matrix<Out>& field) const {
    for (Size k = block.begin; k < block.end(); ++k)
      gemm_(Trans::yes, Trans::no, along_second(k), frequency(modes, s, k),
            comes_again(k, block) ? 1 : 0, between(k));
    const Range rows = rows_of_block(block);
    gemm_(Trans::yes, Trans::no, rows_of(along_first_, rows), rows_of(between_, rows), 0, field);
  }

  template <class E>
  Matrix<E> field(const Matrix<E>& all, Size s) const {
    const Size columns = of_.n * of_.width;
    return alias_matrix(all.data() + s * of_.n * columns, of_.n, columns);
  }
  template <class E>
  Matrix<E> frequency(const Matrix<E>& all, Size s, Size k) const {
    return alias_matrix(all.data() + (s * of_.count + k) * of_.group(), 2 * of_.modes, of_.width);
  }
  Matrix<T> along_second(Size k) const {
    return rows_of(along_second_, {of_.is_negative(k) ? 2 * of_.modes : 0, 2 * of_.modes});
  }
  /// Returns the sums of the frequency's |k1|: the real parts, and below them the imaginary ones.
  Matrix<T> between(Size k) const {
    const Size number = of_.magnitude(k) - magnitudes_.begin;
    return alias_matrix(between_.data() + number * 2 * of_.n * of_.width, 2 * of_.n, of_.width);
  }
  /// Returns true if an earlier frequency of the block has the same |k1|.
  bool comes_again(Size k, Range block) const {
    const Size positive = of_.magnitude(k) - of_.first;
    return of_.is_negative(k) && positive >= block.begin && of_.first + positive < of_.modes;
  }
  /// Returns the rows of `along_first` and `between` that a block of frequencies uses.
  Range rows_of_block(Range block) const {
    const Range used = of_.magnitudes(block);
    return {2 * (used.begin - magnitudes_.begin), 2 * used.count};
  }
  /// Returns a node of the tree of sums: a field of one sample.
  Matrix<StateOf<T>> node(Size place) const {
    const Size level = place == 0 ? tree_levels(blocks_) : level_of_node(place);
    return alias_matrix(gemm_.nodes().data() + level * of_.n * of_.n * of_.width, of_.n,
                        of_.n * of_.width);
  }

  const Gemm<T>& gemm_;
  Size samples_;
  FourierModes of_;
  Size blocks_;
  Range magnitudes_;
  Matrix<T> along_first_, along_second_, between_;
};

}  // namespace tessera::detail
