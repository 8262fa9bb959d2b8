// SPDX-License-Identifier: Apache-2.0
// The matrices of Fourier transforms, and the steps between their products.
#pragma once

#include <cmath>
#include <cstdint>

#include <tessera/base/types.hpp>
#include <tessera/nn/layers/fourier_modes.hpp>
#include <tessera/nn/rows.hpp>

namespace tessera::detail {

/// Factor of every mode.
enum class FourierScale : std::uint8_t {
  mean,    ///< 1 / n^2: modes are means over the grid
  mirror,  ///< 1 for k2 = 0 and k2 = n / 2; 2 for the others, whose conjugates are not stored
};

/// The cosines and sines of all multiples of 2 pi / n, for a host: few points need few of them.
struct UnitRoots {
  static constexpr Size most = 64;

  double cosines[most], sines[most];

  explicit UnitRoots(Size n) {
    for (Size i = 0; i < n; ++i) {
      const double angle = angle_of(i, n);
      cosines[i] = std::cos(angle), sines[i] = std::sin(angle);
    }
  }
  KOKKOS_INLINE_FUNCTION static double angle_of(Size i, Size n) {
    constexpr double two_pi = 6.28318530717958647693;
    return two_pi * static_cast<double>(i) / static_cast<double>(n);
  }
};

/// Fills the two factors of exp(-i (k1 x1 + k2 x2)), with x in units of 2 pi / n. `along_first`,
/// (2 magnitudes, rows), has the rows cos(k1 x1) and -sin(k1 x1) for k1 = least, least + 1, ...;
/// `along_second`, (2 modes, n), has the rows cos(k2 x2) and -sin(k2 x2), scaled, for k2 = 0, 1,
/// ....
template <class T>
struct FourierMatrices {
  T *along_first, *along_second;
  GridRows rows;
  Size firsts;  ///< number of factors exp(-i k1 x1)
  Size n, least;
  FourierScale scale;
  const UnitRoots* roots = nullptr;

  KOKKOS_INLINE_FUNCTION void operator()(Size i) const {
    using std::cos;
    using std::sin;
    const bool is_first = i < firsts;
    const Size columns = is_first ? rows.rows() : n, at = is_first ? i : i - firsts;
    const Size number = at / columns, column = at % columns;
    const Size k = is_first ? least + number : number, x = is_first ? rows.x1(column) : column;
    const Size turn = k * x % n;
    const double angle = UnitRoots::angle_of(turn, n);
    const double mirror = k == 0 || 2 * k == n ? 1 : 2, mean = 1 / static_cast<double>(n * n);
    const double factor = is_first ? 1 : scale == FourierScale::mean ? mean : mirror;
    T* const to = (is_first ? along_first : along_second) + 2 * number * columns + column;
    to[0] = static_cast<StateOf<T>>(factor * (roots ? roots->cosines[turn] : cos(angle)));
    to[columns] = static_cast<StateOf<T>>(-factor * (roots ? roots->sines[turn] : sin(angle)));
  }
};

/// The sums over x1 of a field times cos(k1 x1) and times -sin(k1 x1): two rows for each |k1|,
/// which make the modes of k1 and of -k1. Columns are those of one k1: for each k2 the real parts
/// of all channels, then the imaginary parts.
struct FourierSums {
  Size modes, width;
  Size first, count;  ///< as in FourierModes
  Size least;         ///< |k1| of the first two rows
  Size magnitudes;    ///< rows / 2

  KOKKOS_INLINE_FUNCTION Size columns() const { return 2 * modes * width; }
  /// Returns the elements of the sums of a sample.
  KOKKOS_INLINE_FUNCTION Size size() const { return 2 * magnitudes * columns(); }
  /// Returns the modes of a frequency k1; null if the rank does not have it.
  template <class T>
  KOKKOS_INLINE_FUNCTION const T* modes_of(const T* all, Size k) const {
    return k >= first && k < first + count ? all + (k - first) * columns() : nullptr;
  }
};

/// Makes the modes of `samples` samples of their sums: cosines + i sines for k1 >= 0, cosines - i
/// sines for k1 < 0. `next`: elements from the modes of one sample to the next.
template <class State, class Out>
void modes_of_sums(const FourierSums& of, Size samples, const State* sums, Out* modes, Size next) {
  const Size width = of.width;
  for_rows(
      "tessera::fourier_modes"_label, samples * of.count * of.modes, 2 * width,
      KOKKOS_LAMBDA(const Row& row) {
        const Size k2 = row.number % of.modes, at = row.number / of.modes % of.count,
                   sample = row.number / of.modes / of.count, k = of.first + at;
        const bool negative = k >= of.modes;
        const Size magnitude = negative ? 2 * of.modes - k : k;
        const State* const cosines =
            sums + sample * of.size() + 2 * (magnitude - of.least) * of.columns() + k2 * 2 * width;
        const State* const sines = cosines + of.columns();
        const State sign = negative ? -1 : 1;
        Out* const out = modes + sample * next + (at * of.modes + k2) * 2 * width;
        row.for_each(width, [=](Size c) {
          out[c] = cosines[c] - sign * sines[width + c];
          out[width + c] = cosines[width + c] + sign * sines[c];
        });
      });
}

/// The transpose of modes_of_sums().
template <class T>
void sums_of_modes(const FourierSums& of, Size samples, const T* modes, Size next, T* sums) {
  using Math = StateOf<T>;
  const Size width = of.width;
  for_rows(
      "tessera::fourier_sums"_label, samples * of.magnitudes * of.modes, 2 * width,
      KOKKOS_LAMBDA(const Row& row) {
        const Size k2 = row.number % of.modes, at = row.number / of.modes % of.magnitudes,
                   sample = row.number / of.modes / of.magnitudes, k = of.least + at;
        const T* const of_sample = modes + sample * next + k2 * 2 * width;
        const T *const positive = k < of.modes ? of.modes_of(of_sample, k) : nullptr,
                       *const negative = of.modes_of(of_sample, 2 * of.modes - k);
        T *const cosines = sums + sample * of.size() + 2 * at * of.columns() + k2 * 2 * width,
                 *const sines = cosines + of.columns();
        row.for_each(2 * width, [=](Size c) {
          const Math a = positive ? Math(positive[c]) : Math(0),
                     b = negative ? Math(negative[c]) : Math(0);
          cosines[c] = a + b;
          sines[c < width ? width + c : c - width] = c < width ? b - a : a - b;
        });
      });
}

}  // namespace tessera::detail
