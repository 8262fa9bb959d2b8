// SPDX-License-Identifier: Apache-2.0
// Kernels over ranges of elements. Small ones run on one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>

#include <tessera/base/device.hpp>
#include <tessera/base/split.hpp>
#include <tessera/base/thread_share.hpp>
#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>

namespace tessera {

/// True if kernels run on the threads of the host.
inline constexpr bool on_host = std::is_same_v<ExecSpace, Kokkos::DefaultHostExecutionSpace>;
static_assert(on_host == (this_device == Device::cpu));

template <class Space>
using TeamPolicy = Kokkos::TeamPolicy<Space, Kokkos::IndexType<Size>>;

namespace detail {
template <std::size_t n>
struct Characters {
  char text[n];
  constexpr Characters(const char (&from)[n]) { std::copy_n(from, n, text); }
};
}  // namespace detail

/// Returns a label of a kernel, which is made once: launches allocate no memory for it.
template <detail::Characters characters>
const std::string& operator""_label() {
  static const std::string label(characters.text);
  return label;
}

/// Returns the number of elements below which a kernel runs on one thread: TESSERA_SERIAL_BELOW, or
/// 16384. Two threads break even at 10,000 elements for Adam and at 20,000 for SGD. With one thread
/// per rank there is no limit. Throws ConfigError if the variable is not a number.
Size serial_below();

/// Calls f(space) with the execution space for a kernel over `elements` elements: Serial if threads
/// would not help, else the default space. Both access the same memory. On a host, kernels have
/// finished when their launch returns.
template <class F>
void with_space_for([[maybe_unused]] Size elements, const F& f) {
#ifdef KOKKOS_ENABLE_SERIAL
  if constexpr (on_host && !std::is_same_v<ExecSpace, Kokkos::Serial>) {
    static const Size below = serial_below();
    if (elements < below || ThreadShare::is_open()) return f(Kokkos::Serial());
  }
#endif
  f(ExecSpace());
}

/// A bound of a range. For a bound whose type Size converts to, RangePolicy writes the text of a
/// warning in advance, which takes longer than a small kernel.
struct RangeBound {
  Size value;
  constexpr operator Size() const { return value; }  // NOLINT: Kokkos converts it
};

/// Returns the policy of a kernel over [0, n).
template <class Space>
auto range_policy(const Space& space, Size n) {
  return Kokkos::RangePolicy<Space, Kokkos::IndexType<Size>>(space, RangeBound{0}, RangeBound{n});
}

/// Calls f(j) for j in [0, n) on the calling thread. The calls must be independent: the compiler is
/// told so and vectorises the loop without checks for aliases.
template <class F>
KOKKOS_INLINE_FUNCTION void for_each_independent(Size n, const F& f) {
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC ivdep
#endif
  for (Size j = 0; j < n; ++j) f(j);
}

/// Calls f(i) for i in [0, n). `work` is the work in elements if it is not n.
template <class F>
void for_each(const std::string& label, Size n, const F& f, Size work = -1) {
  if constexpr (on_host)
    if (ThreadShare::is_open()) {  // kernels of Kokkos would wait for each other
      for (Size i = 0; i < n; ++i) f(i);
      return;
    }
  with_space_for(work < 0 ? n : work, [&](const auto& space) {
    Kokkos::parallel_for(label, range_policy(space, n), f);
  });
}

/// Sets the elements of a View without gaps to -0, which changes no number that is added to it.
/// Kokkos::deep_copy() would write +0 on a GPU: for every value that equals 0, it clears the
/// memory.
template <class V>
void set_minus_zero(const V& v) {
  auto* const elements = v.data();
  const typename V::value_type minus_zero(-0.0);
  for_each(
      "tessera::set_minus_zero"_label, static_cast<Size>(v.span()),
      KOKKOS_LAMBDA(Size i) { elements[i] = minus_zero; });
}

/// A policy with a team for each row of `cols` columns. On a host, a team is one thread. On a
/// device, it is a warp for every 128 columns, at most 8: the order of sums then depends on the
/// columns alone, and short rows do not occupy the threads that Kokkos would choose.
template <class Space>
TeamPolicy<Space> row_policy(const Space& space, Size rows, Size cols) {
  int warps = 1;
  while (!on_host && warps < 8 && 128 * warps < cols) warps *= 2;
  return TeamPolicy<Space>(space, static_cast<int>(rows), warps, on_host ? 1 : 32);
}

/// Calls kernel(team) with a team for each of `rows` rows of `cols` columns.
template <class Kernel>
void for_each_row(const std::string& label, Size rows, Size cols, const Kernel& kernel) {
  if (rows == 0) return;
  with_space_for(rows * cols, [&](const auto& space) {
    Kokkos::parallel_for(label, row_policy(space, rows, cols), kernel);
  });
}

/// Calls f(i, partial) for i in [0, n). The rank-0 View `sum` becomes the sum of all that the calls
/// add to `partial`. `work` as above. On a host there are at most 64 balanced parts, so the order
/// depends only on `n` and `work`, not on the number of threads.
template <class F, class Sum>
void sum_each(const std::string& label, Size n, const F& f, const Sum& sum, Size work = -1) {
  if constexpr (on_host) {
    constexpr Size most = 64, least_work = 1024;
    using Value = typename Sum::non_const_value_type;
    Value partial[most] = {};
    const Size elements = work < 0 ? n : work;
    const Size parts = std::clamp<Size>(elements / least_work, 1, std::clamp<Size>(n, 1, most));
    const auto add_part = [n, parts, f, sums = &partial[0]](Size part) {
      const Range items = balanced_split(n, parts, part);
      Value own = 0;
      for (Size i = items.begin; i < items.end(); ++i) f(i, own);
      sums[part] = own;
    };
    for_each(label, parts, add_part, elements);
    Value all = 0;
    for (Size part = 0; part < parts; ++part) all += partial[part];
    sum() = all;
  } else {
    Kokkos::parallel_reduce(label, range_policy(ExecSpace(), n), f, sum);
  }
}

}  // namespace tessera
