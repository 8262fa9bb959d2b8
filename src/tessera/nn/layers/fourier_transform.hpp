// SPDX-License-Identifier: Apache-2.0
// The Fourier transform from fields on a grid to their lowest modes, and its transpose. Both are
// products with matrices of cosines and sines: for few modes these are faster than a fast
// transform.
#pragma once

#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/base/pair_tree.hpp>
#include <tessera/nn/layers/fourier_kernels.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/rows.hpp>

namespace tessera::detail {

template <class T>
class FourierTransform {
 public:
  /// Makes the matrices in the scratch memory of the call, in less time than one sample takes. Sums
  /// over frequencies are added in a tree over `blocks` balanced blocks of them, a power of two;
  /// with more than one, samples are transformed one by one.
  FourierTransform(const LayerCall<T>& call, const FourierModes& of, FourierScale scale,
                   Size blocks)
      : gemm_(call.gemm),
        samples_(call.samples),
        of_(of),
        blocks_(blocks),
        at_once_(blocks > 1 ? 1 : of.samples_at_once(call.samples)),
        magnitudes_(of.magnitudes()),
        rows_(of.rows()) {
    StateOf<T>* at = call.scratch.data();
    const auto take = [&](Size rows, Size columns) {
      return alias_matrix(reinterpret_cast<T*>(std::exchange(at, at + rows * columns)), rows,
                          columns);
    };
    const Size sums = 2 * magnitudes_.count;
    along_first_ = take(sums, rows_.count());
    along_second_ = take(2 * 2 * of.modes, 2 * of.n);
    between_ = of.has_part() ? take(rows_.count(), of.group()) : take(sums, of.n * of.width);
    at += (at_once_ - 1) * size_between();  // of the other samples
    sums_ = at;
    const Size firsts = magnitudes_.count * rows_.count();
    for_each("tessera::fourier_matrices"_label, firsts + of.modes * of.n,
             FourierMatrices<T>{along_first_.data(), along_second_.data(), rows_, firsts, of.n,
                                of.modes, magnitudes_.begin, scale});
  }

  /// Out: T or StateOf<T>.
  template <class Out>
  void to_modes(const Matrix<const T>& fields, const Matrix<Out>& modes) const {
    if (of_.has_part()) return part_to_modes(fields, modes);
    for_samples([&](Size s, Size count) {
      for (Size b = 0; b < blocks_; ++b) {
        const Range block = balanced_split(of_.count, blocks_, b), rows = rows_of_block(block);
        gemm_.multiply_batch(Trans::no, Trans::no, rows_of(along_first_, rows), field(fields, s), 0,
                             rows_of(between_, rows), {count, 0, size_of_field(), size_between()});
        for (Size k = block.begin; k < block.end(); ++k)
          gemm_.multiply_batch(Trans::no, Trans::no, along_second(k), between(k), 0,
                               frequency(modes, s, k), {count, 0, size_between(), size_of_modes()});
      }
    });
  }

  /// The transpose of to_modes().
  template <class Out>
  void to_grid(const Matrix<const T>& modes, const Matrix<Out>& fields) const {
    if (of_.has_part()) return part_to_grid(modes, fields);
    for_samples([&](Size s, Size count) {
      if (blocks_ == 1) return block_to_grid(modes, s, {0, of_.count}, field(fields, s), count);
      for (Size b = 0; b < blocks_; ++b) {
        block_to_grid(modes, s, balanced_split(of_.count, blocks_, b), node(b));
        join_complete_nodes({b, 1}, [&](Size to, Size from) {
          StateOf<T>* const sum = node(to).data();
          const StateOf<T>* const more = node(from).data();
          for_each(
              "tessera::fourier_join"_label, node(to).span(),
              KOKKOS_LAMBDA(Size i) { sum[i] += more[i]; });
        });
      }
      const StateOf<T>* const sum = node(0).data();
      Out* const out = field(fields, s).data();
      for_each(
          "tessera::fourier_join"_label, node(0).span(),
          KOKKOS_LAMBDA(Size i) { out[i] = sum[i]; });
    });
  }

 private:
  // The transforms of a part of the rows go along the second dimension first, so that the work of
  // both products is shared.
  template <class Out>
  void part_to_modes(const Matrix<const T>& fields, const Matrix<Out>& modes) const {
    const Matrix<StateOf<T>> sums = alias_matrix(sums_, 2 * magnitudes_.count, of_.group());
    for_samples([&](Size s, Size count) {
      for (Size i = 0; i < rows_.count(); ++i)
        gemm_.multiply_batch(Trans::no, Trans::no, along_second(rows_.part(i)),
                             positions(fields, s, rows_.part(i)), 0, row_between(i),
                             {count, 0, size_of_field(), size_between()});
      gemm_.multiply_batch(Trans::no, Trans::no, along_first_, between_, 0, sums,
                           {count, 0, size_between(), static_cast<Size>(sums.span())});
      for_each(
          "tessera::fourier_sums"_label, count * size_of_modes(),
          ModesOfSums<StateOf<T>, Out>{sums_of_rows(), sums_, modes.data() + s * size_of_modes()});
    });
  }
  template <class Out>
  void part_to_grid(const Matrix<const T>& modes, const Matrix<Out>& fields) const {
    const Matrix<T> sums =
        alias_matrix(reinterpret_cast<T*>(sums_), 2 * magnitudes_.count, of_.group());
    for_samples([&](Size s, Size count) {
      for_each("tessera::fourier_sums"_label, count * static_cast<Size>(sums.span()),
               SumsOfModes<T>{sums_of_rows(), modes.data() + s * size_of_modes(), sums.data()});
      gemm_.multiply_batch(Trans::yes, Trans::no, along_first_, sums, 0, between_,
                           {count, 0, static_cast<Size>(sums.span()), size_between()});
      for (Size i = 0; i < rows_.count(); ++i)
        gemm_.multiply_batch(Trans::yes, Trans::no, along_second(rows_.part(i)), row_between(i), 0,
                             positions(fields, s, rows_.part(i)),
                             {count, 0, size_between(), size_of_field()});
    });
  }

  /// Calls f(first, count) for groups of samples.
  template <class F>
  void for_samples(const F& f) const {
    for (Size s = 0; s < samples_; s += at_once_) f(s, std::min(at_once_, samples_ - s));
  }
  // Elements from one sample to the next.
  Size size_of_field() const { return rows_.positions() * of_.width; }
  Size size_of_modes() const { return of_.count * of_.group(); }
  Size size_between() const { return static_cast<Size>(between_.span()); }

  FourierSums sums_of_rows() const {
    return {of_.modes, of_.width, of_.first, of_.count, magnitudes_.begin, magnitudes_.count};
  }
  /// Returns the factors for the points of a row: those of real numbers, for k1 >= 0.
  Matrix<T> along_second(const GridRows::Part& row) const {
    return block_of(along_second_, {0, 2 * of_.modes}, row.x2);
  }
  template <class E>
  Matrix<E> positions(const Matrix<E>& all, Size s, const GridRows::Part& row) const {
    return rows_of(all, {s * rows_.positions() + row.first, row.x2.count});
  }
  Matrix<T> row_between(Size i) const {
    return alias_matrix(between_.data() + i * of_.group(), 2 * of_.modes, of_.width);
  }

  /// Sets the fields of `count` samples to the contribution of a block of frequencies.
  template <class Out>
  void block_to_grid(const Matrix<const T>& modes, Size s, Range block, const Matrix<Out>& field,
                     Size count = 1) const {
    for (Size k = block.begin; k < block.end(); ++k)
      gemm_.multiply_batch(Trans::yes, Trans::no, along_second(k), frequency(modes, s, k),
                           comes_again(k, block) ? 1 : 0, between(k),
                           {count, 0, size_of_modes(), size_between()});
    const Range rows = rows_of_block(block);
    gemm_.multiply_batch(Trans::yes, Trans::no, rows_of(along_first_, rows),
                         rows_of(between_, rows), 0, field,
                         {count, 0, size_between(), size_of_field()});
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
  Size blocks_, at_once_;
  Range magnitudes_;
  GridRows rows_;
  Matrix<T> along_first_, along_second_, between_;
  StateOf<T>* sums_;  ///< with a part of the rows, (2 magnitudes, columns of a frequency)
};

}  // namespace tessera::detail
