// SPDX-License-Identifier: Apache-2.0
// Kernels over ranges of elements. Small ones run on one thread.
#pragma once

#include <string>
#include <type_traits>

#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>

namespace tessera {

/// True if kernels run on the threads of the host.
inline constexpr bool on_host = std::is_same_v<ExecSpace, Kokkos::DefaultHostExecutionSpace>;

template <class Space>
using TeamPolicy = Kokkos::TeamPolicy<Space, Kokkos::IndexType<Size>>;

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
    if (elements < below) return f(Kokkos::Serial());
  }
#endif
  f(ExecSpace());
}

/// Calls f(i) for i in [0, n). `work` is the work in elements if it is not n.
template <class F>
void for_each(const std::string& label, Size n, const F& f, Size work = -1) {
  with_space_for(work < 0 ? n : work, [&](const auto& space) {
    using Space = std::decay_t<decltype(space)>;
    Kokkos::parallel_for(label,
                         Kokkos::RangePolicy<Space, Kokkos::IndexType<Size>>(space, Size{0}, n), f);
  });
}

/// A policy with a team for each row. On a host, a team is one thread.
template <class Space>
TeamPolicy<Space> row_policy(const Space& space, Size rows) {
  using Policy = TeamPolicy<Space>;
  return on_host ? Policy(space, rows, 1, 1) : Policy(space, rows, Kokkos::AUTO, 32);
}

/// Calls kernel(team) with a team for each of `rows` rows of `cols` columns.
template <class Kernel>
void for_each_row(const std::string& label, Size rows, Size cols, const Kernel& kernel) {
  if (rows == 0) return;
  with_space_for(rows * cols, [&](const auto& space) {
    Kokkos::parallel_for(label, row_policy(space, rows), kernel);
  });
}

/// Calls kernel(team, partial) as for_each_row does. The rank-0 View `sum` becomes the sum of all
/// that the kernels add to `partial`.
template <class Kernel, class Sum>
void sum_each_row(const std::string& label, Size rows, Size cols, const Kernel& kernel,
                  const Sum& sum) {
  with_space_for(rows * cols, [&](const auto& space) {
    Kokkos::parallel_reduce(label, row_policy(space, rows), kernel, sum);
  });
}

/// Calls f(i, partial) for i in [0, n). The rank-0 View `sum` becomes the sum of all that the calls
/// add to `partial`. The order depends only on n and the number of threads.
template <class F, class Sum>
void sum_each(const std::string& label, Size n, const F& f, const Sum& sum, Size work = -1) {
  with_space_for(work < 0 ? n : work, [&](const auto& space) {
    using Space = std::decay_t<decltype(space)>;
    Kokkos::parallel_reduce(
        label, Kokkos::RangePolicy<Space, Kokkos::IndexType<Size>>(space, Size{0}, n), f, sum);
  });
}

}  // namespace tessera
