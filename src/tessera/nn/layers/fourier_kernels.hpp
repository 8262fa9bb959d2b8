// SPDX-License-Identifier: Apache-2.0
// The matrices of Fourier transforms, and the steps between their products.
#pragma once

#include <cmath>
#include <cstdint>

#include <tessera/base/types.hpp>
#include <tessera/nn/layers/fourier_modes.hpp>

namespace tessera::detail {

/// Factor of every mode.
enum class FourierScale : std::uint8_t {
  mean,    ///< 1 / n^2: modes are means over the grid
  mirror,  ///< 1 for k2 = 0 and k2 = n / 2; 2 for the others, whose conjugates are not stored
};

/// Fills the two factors of exp(-i (k1 x1 + k2 x2)), with x in units of 2 pi / n. `along_first`,
/// (2 magnitudes, rows), has the rows cos(k1 x1) and -sin(k1 x1) for k1 = least, least + 1, ....
/// `along_second` is two matrices (2 modes, 2 n), for k1 >= 0 and for k1 < 0. The first multiplies
/// the real and imaginary parts of that product by exp(-i k2 x2); the second multiplies those of
/// its conjugate.
template <class T>
struct FourierMatrices {
  T *along_first, *along_second;
  GridRows rows;
  Size firsts;  ///< number of factors exp(-i k1 x1)
  Size n, modes, least;
  FourierScale scale;

  KOKKOS_INLINE_FUNCTION void operator()(Size i) const {
    using std::cos;
    using std::sin;
    constexpr double two_pi = 6.28318530717958647693;
    const bool is_first = i < firsts;
    const Size columns = is_first ? rows.count() : n, at = is_first ? i : i - firsts;
    const Size number = at / columns, column = at % columns;
    const Size k = is_first ? least + number : number, x = is_first ? rows.x1(column) : column;
    const double angle = two_pi * static_cast<double>(k * x % n) / static_cast<double>(n);
    const double cosine = cos(angle), sine = sin(angle);
    if (is_first) {
      T* const to = along_first + 2 * number * columns + column;
      to[0] = static_cast<StateOf<T>>(cosine);
      to[columns] = static_cast<StateOf<T>>(-sine);
      return;
    }
    const double mirror = k == 0 || 2 * k == n ? 1 : 2, mean = 1 / static_cast<double>(n * n);
    const double factor = scale == FourierScale::mean ? mean : mirror;
    for (int conjugates = 0; conjugates < 2; ++conjugates) {
      T* const to = along_second + 4 * n * (conjugates * modes + k) + x;
      const double of_imaginary = conjugates ? -factor : factor;
      to[0] = static_cast<StateOf<T>>(factor * cosine);
      to[n] = static_cast<StateOf<T>>(of_imaginary * sine);
      to[2 * n] = static_cast<StateOf<T>>(factor * -sine);
      to[3 * n] = static_cast<StateOf<T>>(of_imaginary * cosine);
    }
  }
};

/// The sums over x1 of a field times cos(k1 x1) and times -sin(k1 x1): two rows for each |k1|,
/// which make the modes of k1 and of -k1. Columns are those of one k1.
struct FourierSums {
  Size modes, width;
  Size first, count;  ///< as in FourierModes
  Size least;         ///< |k1| of the first two rows
  Size magnitudes;    ///< rows / 2

  KOKKOS_INLINE_FUNCTION Size columns() const { return 2 * modes * width; }
  /// Returns the elements of the sums of a sample.
  KOKKOS_INLINE_FUNCTION Size sums() const { return 2 * magnitudes * columns(); }
  KOKKOS_INLINE_FUNCTION bool is_real(Size column) const { return column / width % 2 == 0; }
  /// Returns the column with the imaginary part of a real one, and the other way round.
  KOKKOS_INLINE_FUNCTION Size partner(Size column) const {
    return is_real(column) ? column + width : column - width;
  }
};

/// Makes modes of the sums of each sample: cosines + i sines for k1 >= 0, cosines - i sines for k1
/// < 0.
template <class State, class Out>
struct ModesOfSums {
  FourierSums of;
  const State* sums;
  Out* to;

  KOKKOS_INLINE_FUNCTION void operator()(Size i) const {
    const Size column = i % of.columns(), frequency = i / of.columns(),
               k = of.first + frequency % of.count;
    const State* const own = sums + frequency / of.count * of.sums();
    const bool negative = k >= of.modes;
    const Size row = 2 * ((negative ? 2 * of.modes - k : k) - of.least);
    const State cosines = own[row * of.columns() + column],
                sines = own[(row + 1) * of.columns() + of.partner(column)];
    to[i] = of.is_real(column) == negative ? cosines + sines : cosines - sines;
  }
};

/// The transpose of ModesOfSums.
template <class T>
struct SumsOfModes {
  FourierSums of;
  const T* from;
  T* sums;

  KOKKOS_INLINE_FUNCTION void operator()(Size i) const {
    const Size sample = i / of.sums(), column = i % of.columns();
    const Size row = i % of.sums() / of.columns(), k = of.least + row / 2;
    const T* const own = from + sample * of.count * of.columns();
    const bool sines = row % 2 == 1;
    const Size at = sines ? of.partner(column) : column;
    StateOf<T> sum = 0;
    for (int sign = 0; sign < 2; ++sign) {
      const bool negative = sign == 1;
      const Size each = negative ? 2 * of.modes - k : k;
      if (each < of.first || each >= of.first + of.count || negative != (each >= of.modes))
        continue;
      const StateOf<T> value = own[(each - of.first) * of.columns() + at];
      sum += sines && of.is_real(column) == negative ? -value : value;
    }
    sums[i] = sum;
  }
};

}  // namespace tessera::detail
