// SPDX-License-Identifier: Apache-2.0
// Kernels over ranges of elements, on the space that suits their size.
#pragma once

#include <string>
#include <type_traits>

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>

namespace tessera {

/// Whether kernels run on the processor's own threads.
inline constexpr bool on_host = std::is_same_v<ExecSpace, Kokkos::DefaultHostExecutionSpace>;

template <class Space>
using TeamPolicy = Kokkos::TeamPolicy<Space, Kokkos::IndexType<Size>>;

/// Elements below which a kernel runs on one thread, done before the others have been woken: those
/// of TESSERA_SERIAL_BELOW, or 16384: two threads break even at 10,000 elements of Adam and 20,000
/// of SGD. All, where a rank has one thread. Throws Error (usage) for a variable that is no number.
Size serial_below();

/// Calls f(space) with the execution space for a kernel that does the work of `elements` elements:
/// Serial where threads would not help, else the default one. Both see the same memory, and a
/// kernel has ended when it returns.
template <class F>
void with_space_for([[maybe_unused]] Size elements, const F& f) {
#ifdef KOKKOS_ENABLE_SERIAL
  if constexpr (on_host && !std::is_same_v<ExecSpace, Kokkos::Serial>) {
    static const Size below = serial_below();
    if (elements < below) return f(Kokkos::Serial());
  }
#endif
  f(ExecSpace());
}

/// f(i) for i in [0, n); `work`: in elements, where it is not n.
template <class F>
void for_each(const std::string& label, Size n, const F& f, Size work = -1) {
  with_space_for(work < 0 ? n : work, [&](const auto& space) {
    using Space = std::decay_t<decltype(space)>;
    Kokkos::parallel_for(label,
                         Kokkos::RangePolicy<Space, Kokkos::IndexType<Size>>(space, Size{0}, n), f);
  });
}

/// A team for each of `rows` rows; threads of a host take whole rows, for which one is enough.
template <class Space>
TeamPolicy<Space> row_policy(const Space& space, Size rows) {
  using Policy = TeamPolicy<Space>;
  return on_host ? Policy(space, rows, 1, 1) : Policy(space, rows, Kokkos::AUTO, 32);
}

/// kernel(team) with a team for each of `rows` rows of `cols` columns.
template <class Kernel>
void for_each_row(const std::string& label, Size rows, Size cols, const Kernel& kernel) {
  if (rows == 0) return;
  with_space_for(rows * cols, [&](const auto& space) {
    Kokkos::parallel_for(label, row_policy(space, rows), kernel);
  });
}

/// The rank-0 View `sum` becomes the sum of what kernel(team, partial) adds to `partial`, with a
/// team for each row as in for_each_row.
template <class Kernel, class Sum>
void sum_each_row(const std::string& label, Size rows, Size cols, const Kernel& kernel,
                  const Sum& sum) {
  with_space_for(rows * cols, [&](const auto& space) {
    Kokkos::parallel_reduce(label, row_policy(space, rows), kernel, sum);
  });
}

/// The rank-0 View `sum` becomes the sum over i in [0, n) of what f(i, partial) adds to `partial`;
/// in an order that depends on n and the number of threads only.
template <class F, class Sum>
void sum_each(const std::string& label, Size n, const F& f, const Sum& sum, Size work = -1) {
  with_space_for(work < 0 ? n : work, [&](const auto& space) {
    using Space = std::decay_t<decltype(space)>;
    Kokkos::parallel_reduce(
        label, Kokkos::RangePolicy<Space, Kokkos::IndexType<Size>>(space, Size{0}, n), f, sum);
  });
}

}  // namespace tessera
