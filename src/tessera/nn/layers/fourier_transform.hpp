// SPDX-License-Identifier: Apache-2.0
// The Fourier transform between fields on a grid and their lowest modes, and its transpose:
// products with matrices of cosines and sines, which take less time than a fast transform of all
// modes.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/nn/layers/layer_call.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera::detail {

inline const std::string fourier_matrices_label = "tessera::fourier_matrices";  // made once

/// Fields of `width` channels on n x n points, (samples * n * n, width), and their modes, (samples,
/// count * modes * 2 * width): for each frequency k1 along the first dimension all k2 along the
/// second, and of each mode the real parts of all channels, then the imaginary ones. The
/// frequencies k1 are 0, ..., modes - 1, -modes, ..., -1, of which a rank has `count` from `first`
/// on; k2 are 0, ..., modes - 1.
struct FourierModes {
  Size n = 0, modes = 0, width = 0;
  Size first = 0, count = 0;

  /// Columns of one frequency k1.
  Size group() const { return 2 * modes * width; }

  bool is_negative(Size k) const { return first + k >= modes; }
  /// |k1| of this rank's k-th frequency.
  Size magnitude(Size k) const { return is_negative(k) ? 2 * modes - first - k : first + k; }
  /// The |k1| of this rank. A real field needs one sum for k1 and -k1: they are conjugates.
  Range magnitudes() const {
    Size least = modes, most = 0;
    for (Size k = 0; k < count; ++k) {
      least = std::min(least, magnitude(k));
      most = std::max(most, magnitude(k));
    }
    return {least, most - least + 1};
  }

  /// The three matrices, and one sample between the two products.
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

/// A rank of `model` has all frequencies k2 of some frequencies k1.
inline ColumnGroups fourier_groups(const FourierGrid& grid) {
  return {2 * grid.modes * grid.width, "frequencies", "model.fno.modes", grid.modes};
}
/// `columns`: those of the modes, of a rank.
inline bool has_whole_groups(const LayerSpec& layer, Size columns) {
  return columns % layer.groups.columns == 0 && layer.first % layer.groups.columns == 0;
}

/// Layers have the settings {n, modes}. `columns`: those of the modes, of a rank.
inline FourierModes fourier_modes(const LayerSpec& layer, Size columns, Size width) {
  FourierModes of{layer.settings[0], layer.settings[1], width};
  of.first = layer.first / of.group();
  of.count = columns / of.group();
  return of;
}

/// What modes are multiplied by on one of the two ways.
enum class FourierScale : std::uint8_t {
  mean,    ///< 1 / n^2: modes are means over the grid, however fine that is
  mirror,  ///< 2 for a mode that stands for its conjugate too, 1 for k2 = 0 and n / 2
};

/// `along_first` has rows cos(k1 x1), -sin(k1 x1) for k1 = least, least + 1, .... `along_second`
/// takes the real and imaginary parts of that, for all x2, to those of (cos - i sin)(k2 x2) times
/// it, and behind that, for -k1, times its conjugate. x: in units of 2 pi / n.
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

  /// What part `from` of a number gives to part `to` of its product with cos(k x) - i sin(k x);
  /// parts: 0 real, 1 imaginary.
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
  /// Makes the matrices, in the scratch memory of the call: they take less time than one sample.
  FourierTransform(const LayerCall<T>& call, const FourierModes& of, FourierScale scale)
      : gemm_(call.gemm), samples_(call.samples), of_(of), magnitudes_(of.magnitudes()) {
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
    for (Size s = 0; s < samples_; ++s) {
      gemm_(Trans::no, Trans::no, along_first_, field(fields, s), 0, between_);
      for (Size k = 0; k < of_.count; ++k)
        gemm_(Trans::no, Trans::no, along_second(k), between(k), 0, frequency(modes, s, k));
    }
  }

  /// The transpose. Out: T, or StateOf<T>.
  template <class Out>
  void to_grid(const Matrix<const T>& modes, const Matrix<Out>& fields) const {
    for (Size s = 0; s < samples_; ++s) {
      for (Size k = 0; k < of_.count; ++k)
        gemm_(Trans::yes, Trans::no, along_second(k), frequency(modes, s, k),
              comes_again(k) ? 1 : 0, between(k));
      gemm_(Trans::yes, Trans::no, along_first_, between_, 0, field(fields, s));
    }
  }

 private:
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
  /// Of the magnitude of a frequency: its real parts, and below them the imaginary ones.
  Matrix<T> between(Size k) const {
    const Size number = of_.magnitude(k) - magnitudes_.begin;
    return alias_matrix(between_.data() + number * 2 * of_.n * of_.width, 2 * of_.n, of_.width);
  }
  /// An earlier frequency of this rank has the same magnitude.
  bool comes_again(Size k) const {
    const Size positive = of_.magnitude(k) - of_.first;
    return of_.is_negative(k) && positive >= 0 && of_.first + positive < of_.modes;
  }

  const Gemm<T>& gemm_;
  Size samples_;
  FourierModes of_;
  Range magnitudes_;
  Matrix<T> along_first_, along_second_, between_;
};

}  // namespace tessera::detail
