// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <tessera/base/for_each.hpp>
#include <tessera/base/pair_tree.hpp>
#include <tessera/optim/exact_squares.hpp>

namespace tessera {
namespace {

/// Returns e with 2^e <= x < 2^(e + 1), but at least -1000, whose power has an inverse; 0 for 0 and
/// for values that are not finite.
int exponent_of(double x) { return x > 0 && std::isfinite(x) ? std::max(std::ilogb(x), -1000) : 0; }

}  // namespace

/// A sum of `elements` integers of this many bits has at most 53 bits.
ExactSquares::ExactSquares(Size elements) : bits_(static_cast<int>(52 - tree_levels(elements))) {}

template <class T>
void ExactSquares::raise_to_largest(const Vector<const T>& v, const Vector<double>& largest) {
  const T* const data = v.data();
  double* const out = largest.data();
  const Kokkos::View<double, Kokkos::LayoutRight, MemSpace> own(out + 1);
  Kokkos::parallel_reduce(
      "tessera::largest_magnitude"_label, range_policy(ExecSpace(), static_cast<Size>(v.extent(0))),
      KOKKOS_LAMBDA(Size i, double& most) {
        const double magnitude = data[i] < 0 ? -data[i] : data[i];
        most = magnitude > most ? magnitude : most;
      },
      Kokkos::Max<double, MemSpace>(own));
  for_each(
      "tessera::join_limbs"_label, 1,
      KOKKOS_LAMBDA(Size) { out[0] = out[1] > out[0] ? out[1] : out[0]; });
}

template <class T>
void ExactSquares::add(const Vector<const T>& v, double largest, const Vector<double>& sums) const {
  const T* const data = v.data();
  double* const out = sums.data();
  // x times `scale` is below 2, and its square below 4.
  const double scale = std::ldexp(1.0, -exponent_of(largest));
  const double unit = std::ldexp(1.0, bits_ - 2), shift = std::ldexp(1.0, bits_);
  for (Size limb = 0; limb < square_limbs; ++limb) {
    sum_each(
        "tessera::limbs_of_squares"_label, v.extent(0),
        KOKKOS_LAMBDA(Size i, double& sum) {
          using std::floor;
          const double x = data[i] * scale;
          double rest = x * x * unit, whole = floor(rest);
          for (Size l = 0; l < limb; ++l) {
            rest = (rest - whole) * shift;
            whole = floor(rest);
          }
          sum += whole;
        },
        Kokkos::View<double, Kokkos::LayoutRight, MemSpace>(out + square_limbs));
    for_each(
        "tessera::join_limbs"_label, 1, KOKKOS_LAMBDA(Size) { out[limb] += out[square_limbs]; });
  }
}

double ExactSquares::total(std::span<const double, square_limbs> sums, double largest) const {
  if (!std::isfinite(largest)) return largest;
  double total = 0;
  for (Size limb = square_limbs; limb-- > 0;)
    total = sums[static_cast<std::size_t>(limb)] + std::ldexp(total, -bits_);
  return std::ldexp(total, 2 * exponent_of(largest) - (bits_ - 2));
}

template void ExactSquares::raise_to_largest<float>(const Vector<const float>&,
                                                    const Vector<double>&);
template void ExactSquares::raise_to_largest<double>(const Vector<const double>&,
                                                     const Vector<double>&);
template void ExactSquares::add<float>(const Vector<const float>&, double,
                                       const Vector<double>&) const;
template void ExactSquares::add<double>(const Vector<const double>&, double,
                                        const Vector<double>&) const;

}  // namespace tessera
