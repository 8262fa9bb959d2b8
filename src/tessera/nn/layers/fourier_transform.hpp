// SPDX-License-Identifier: Apache-2.0
// The Fourier transform from fields on a grid to their lowest modes, and its transpose. Both are
// products with matrices of cosines and sines: for few modes these are faster than a fast
// transform.
#pragma once

#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/base/pair_tree.hpp>
#include <tessera/base/share_items.hpp>
#include <tessera/nn/layers/fourier_kernels.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/rows.hpp>

namespace tessera::detail {

template <class T>
class FourierTransform {
 public:
  /// Makes the matrices in the scratch memory of the call, in less time than one sample takes. Sums
  /// over frequencies are added in a tree over `blocks` of them; with more than one, samples are
  /// transformed one by one.
  FourierTransform(const LayerCall<T>& call, const FourierModes& of, FourierScale scale,
                   const SumBlocks& blocks)
      : gemm_(call.gemm),
        samples_(call.samples),
        of_(of),
        blocks_(blocks),
        places_(of.samples_at_once(call.samples)),
        at_once_(of.tiling.threads > 0 || blocks.own.count > 1 ? 1 : places_),
        magnitudes_(of.magnitudes()),
        grid_(of.grid) {
    blocks_.unit /= of.group();  // in frequencies
    StateOf<T>* at = call.scratch.data();
    const auto take = [&](Size rows, Size columns) {
      return alias_matrix(reinterpret_cast<T*>(std::exchange(at, at + rows * columns)), rows,
                          columns);
    };
    const Size sums = 2 * magnitudes_.count;
    along_first_ = take(sums, grid_.rows());
    along_second_ = take(2 * of.modes, of.n);
    between_ = take(grid_.rows(), of.group());
    at += (places_ - 1) * size_between();  // of the other samples
    sums_ = at;
    const Size firsts = magnitudes_.count * grid_.rows();
    FourierMatrices<T> matrices{
        along_first_.data(), along_second_.data(), grid_, firsts, of.n, magnitudes_.begin, scale};
    const bool has_roots = of.tiling.threads > 0 && of.n <= UnitRoots::most;
    const UnitRoots roots(has_roots ? of.n : 0);
    if (has_roots) matrices.roots = &roots;
    for_each("tessera::fourier_matrices"_label, firsts + of.modes * of.n, matrices);
  }

  /// Out: T or StateOf<T>.
  template <class Out>
  void to_modes(const Matrix<const T>& fields, const Matrix<Out>& modes) const {
    for_samples([&](Size s, Size count, Size place) {
      for_grid_rows(count, [&](const GridRows::Part& row, Size i, const GemmBatch& batch) {
        gemm_.multiply_batch(Trans::no, Trans::no, along_second(row), positions(fields, s, row), 0,
                             row_between(place, i), batch);
      });
      const FourierSums of = sums_of({0, of_.count});
      const Matrix<StateOf<T>> sums =
          alias_matrix(sums_ + place * of.size(), 2 * of.magnitudes, of.columns());
      gemm_.multiply_batch(Trans::no, Trans::no, along_first(of), between(place), 0, sums,
                           {count, 0, size_between(), of.size()});
      modes_of_sums(of, count, sums.data(), modes.data() + s * size_of_modes(), size_of_modes());
    });
  }

  /// The transpose of to_modes().
  template <class Out>
  void to_grid(const Matrix<const T>& modes, const Matrix<Out>& fields) const {
    for_samples([&](Size s, Size count, Size place) {
      if (blocks_.own.count <= 1)
        return block_to_grid(modes, s, {0, of_.count}, fields, s, count, place);
      for (Size b = 0; b < blocks_.own.count; ++b) {
        block_to_grid(modes, s, blocks_.terms(b), node(nodes_in({0, b})), 0, 1, place);
        join_rows(0, {b, 1}, [&](Size lower, Size upper) {
          StateOf<T>* const sum = node(lower).data();
          const StateOf<T>* const more = node(upper).data();
          for_each(
              "tessera::fourier_join"_label, size_of_field(),
              KOKKOS_LAMBDA(Size i) { sum[i] += more[i]; });
        });
      }
      const StateOf<T>* const sum = node(0).data();
      Out* const out = fields.data() + s * size_of_field();
      for_each(
          "tessera::fourier_join"_label, size_of_field(),
          KOKKOS_LAMBDA(Size i) { out[i] = sum[i]; });
    });
  }

 private:
  /// Sets the fields of `count` samples from `to` on to the contribution of a block of frequencies
  /// of the samples from `s` on.
  template <class Out>
  void block_to_grid(const Matrix<const T>& modes, Size s, Range block, const Matrix<Out>& fields,
                     Size to, Size count, Size place) const {
    const FourierSums of = sums_of(block);
    const Matrix<T> sums = alias_matrix(reinterpret_cast<T*>(sums_) + place * of.size(),
                                        2 * of.magnitudes, of.columns());
    sums_of_modes(of, count, first_mode(modes, s, of), size_of_modes(), sums.data());
    gemm_.multiply_batch(Trans::yes, Trans::no, along_first(of), sums, 0, between(place),
                         {count, 0, of.size(), size_between()});
    for_grid_rows(count, [&](const GridRows::Part& row, Size i, const GemmBatch& batch) {
      gemm_.multiply_batch(Trans::yes, Trans::no, along_second(row), row_between(place, i), 0,
                           positions(fields, to, row), {batch.count, 0, batch.c, batch.b});
    });
  }

  /// Calls f(first, count, place) for groups of samples; `place` is that of their first sample in
  /// the scratch memory. Threads share whole samples.
  template <class F>
  void for_samples(const F& f) const {
    const bool on_cpu = of_.tiling.threads > 0;
    const Region region(on_cpu ? products_region : "tessera::fourier_transform");
    const bool is_shared = on_cpu && gemm_.is_reentrant() && occupies_threads(samples_);
    share_items("tessera::fourier_transform"_label, samples_, is_shared ? places_ : 1,
                samples_ * size_between(), [&](const Range& own, Size place) {
                  for (Size s = own.begin; s < own.end(); s += at_once_)
                    f(s, std::min(at_once_, own.end() - s), place);
                });
  }
  /// Calls f(row, number, batch) for the rows of the grid of `count` samples, or once for all rows
  /// of a whole grid. The batch goes from fields to the elements between the products.
  template <class F>
  void for_grid_rows(Size count, const F& f) const {
    if (grid_.is_whole())
      return f(grid_.part(0), 0, {count * of_.n, 0, of_.n * of_.width, of_.group()});
    for (Size i = 0; i < grid_.rows(); ++i)
      f(grid_.part(i), i, {count, 0, size_of_field(), size_between()});
  }
  // Elements from one sample to the next.
  Size size_of_field() const { return of_.own.count() * of_.width; }
  Size size_of_modes() const { return of_.of_modes(1); }
  Size size_between() const { return static_cast<Size>(between_.span()); }

  FourierSums sums_of(Range block) const {
    Range used = of_.magnitudes(block);
    if (used.count == 0) used.begin = magnitudes_.begin;
    return {of_.modes, of_.width, of_.first + block.begin, block.count, used.begin, used.count};
  }
  /// Returns the factors of a block of frequencies.
  Matrix<T> along_first(const FourierSums& of) const {
    return rows_of(along_first_, {2 * (of.least - magnitudes_.begin), 2 * of.magnitudes});
  }
  /// Returns the factors for the points of a row.
  Matrix<T> along_second(const GridRows::Part& row) const {
    return block_of(along_second_, {0, 2 * of_.modes}, row.x2);
  }
  template <class E>
  Matrix<E> positions(const Matrix<E>& all, Size s, const GridRows::Part& row) const {
    return rows_of(all, {s * of_.own.count() + of_.own.row_of(row.position), row.x2.count});
  }
  template <class E>
  E* first_mode(const Matrix<E>& modes, Size s, const FourierSums& of) const {
    return modes.data() + s * size_of_modes() + (of.first - of_.first) * of_.group();
  }
  Matrix<T> between(Size place) const { return moved(between_, place * size_between()); }
  Matrix<T> row_between(Size place, Size i) const {
    return alias_matrix(between(place).data() + i * of_.group(), 2 * of_.modes, of_.width);
  }
  /// Returns a row of the tree of sums: a field of one sample.
  Matrix<StateOf<T>> node(Size row) const {
    return alias_matrix(gemm_.nodes().data() + row * size_of_field(), grid_.count(), of_.width);
  }

  const Gemm<T>& gemm_;
  Size samples_;
  FourierModes of_;
  SumBlocks blocks_;
  Size places_;   ///< samples in the scratch memory
  Size at_once_;  ///< samples in a product
  Range magnitudes_;
  GridRows grid_;
  Matrix<T> along_first_, along_second_, between_;
  StateOf<T>* sums_;  ///< (2 magnitudes, columns of a frequency)
};

}  // namespace tessera::detail
