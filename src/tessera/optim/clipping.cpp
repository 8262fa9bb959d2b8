// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/for_each.hpp>
#include <tessera/optim/clipping.hpp>

namespace tessera {
namespace {

/// `result` is a rank-0 View.
template <class T, class Result>
void add_squares(const Vector<const T>& v, const Result& result) {
  const T* const data = v.data();
  const Size n = static_cast<Size>(v.extent(0));
  // Eight squares are added as a tree before they join the running sum. One chain of additions
  // would be slower than memory.
  const Size groups = n / 8;
  sum_each(
      "tessera::sum_of_squares"_label, groups + n % 8,
      KOKKOS_LAMBDA(Size i, double& sum) {
        if (i >= groups) {
          const double x = data[n - 1 - (i - groups)];
          sum += x * x;
          return;
        }
        double s[8];
        for (int k = 0; k < 8; ++k) {
          const double x = data[8 * i + k];
          s[k] = x * x;
        }
        sum += ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
      },
      result, n);
}

}  // namespace

template <class T>
void sum_of_squares(const Vector<const T>& v, const Vector<double>& sum) {
  add_squares(v, Kokkos::View<double, Kokkos::LayoutRight, MemSpace>(sum.data()));
}

template <class T>
double sum_of_squares(const Vector<const T>& v) {
  double sum = 0;
  add_squares(v, Kokkos::View<double, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(&sum));
  ExecSpace().fence("tessera::sum_of_squares");
  return sum;
}

template <class T>
void clip_by_value(const Vector<T>& v, T limit) {
  T* const data = v.data();
  for_each(
      "tessera::clip_by_value"_label, v.extent(0), KOKKOS_LAMBDA(Size i) {
        const T x = data[i];
        data[i] = x > limit ? limit : x < -limit ? -limit : x;
      });
}

template <class T>
void find_not_finite(const Vector<const T>& v, const Vector<double>& found) {
  const T* const data = v.data();
  double* const flag = found.data();
  for_each(
      "tessera::find_not_finite"_label, v.extent(0), KOKKOS_LAMBDA(Size i) {
        // x - x is 0, or NaN for an infinity or NaN. All threads write the same value.
        if (!(data[i] - data[i] == T(0))) *flag = 1;
      });
}

void add_up(const Vector<double>& sums) {
  double* const data = sums.data();
  const Size count = static_cast<Size>(sums.extent(0));
  for_each(
      "tessera::add_up"_label, 1, KOKKOS_LAMBDA(Size) {
        for (Size i = 1; i < count; ++i) data[0] += data[i];
      });
}

template <class T>
void accumulate(const Vector<const T>& from, const Vector<T>& to) {
  const T* const in = from.data();
  T* const out = to.data();
  for_each(
      "tessera::accumulate"_label, to.extent(0),
      KOKKOS_LAMBDA(Size i) { out[i] = static_cast<StateOf<T>>(out[i]) + in[i]; });
}

template void sum_of_squares<float>(const Vector<const float>&, const Vector<double>&);
template void sum_of_squares<double>(const Vector<const double>&, const Vector<double>&);
template double sum_of_squares<float>(const Vector<const float>&);
template double sum_of_squares<double>(const Vector<const double>&);
template void clip_by_value<float>(const Vector<float>&, float);
template void clip_by_value<double>(const Vector<double>&, double);
template void find_not_finite<float>(const Vector<const float>&, const Vector<double>&);
template void find_not_finite<double>(const Vector<const double>&, const Vector<double>&);
template void accumulate<float>(const Vector<const float>&, const Vector<float>&);
template void accumulate<double>(const Vector<const double>&, const Vector<double>&);
template void accumulate<BFloat16>(const Vector<const BFloat16>&, const Vector<BFloat16>&);
template void accumulate<Float16>(const Vector<const Float16>&, const Vector<Float16>&);

}  // namespace tessera
