// SPDX-License-Identifier: Apache-2.0
// Kernels over ranges of elements. Small ones run on one thread.
#pragma once

#include <algorithm>
#include <string>
#include <type_traits>

#include <tessera/base/device.hpp>
#include <tessera/base/split.hpp>
#include <tessera/base/types.hpp>
#include <tessera/base/view.hpp>

namespace tessera {

/// True if kernels run on the threads of the host.
inline constexpr bool on_host = std::is_same_v<ExecSpace, Kokkos::DefaultHostExecutionSpace>;
static_assert(on_host == (this_device == Device::cpu));

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

namespace detail {

/// The rank-0 View `sum` becomes the sum over `n` items, on a host. Calls add(space, parts,
/// add_part), which calls add_part(part, item) for every part; that calls item(i, partial) for the
/// items i of the part. There are at most 64 balanced parts, so the order depends only on `n` and
/// `work`, not on the number of threads.
template <class Sum, class Add>
void sum_in_parts(Size n, Size work, const Sum& sum, const Add& add) {
  constexpr Size most = 64, least_work = 1024;
  using Value = typename Sum::non_const_value_type;
  Value partial[most] = {};
  const Size parts = std::clamp<Size>(work / least_work, 1, std::clamp<Size>(n, 1, most));
  with_space_for(work, [&](const auto& space) {
    add(space, parts, [n, parts, sums = &partial[0]](Size part, const auto& item) {
      const Range items = balanced_split(n, parts, part);
      Value own = 0;
      for (Size i = items.begin; i < items.end(); ++i) item(i, own);
      sums[part] = own;
    });
  });
  Value all = 0;
  for (Size part = 0; part < parts; ++part) all += partial[part];
  sum() = all;
}

}  // namespace detail

/// Calls kernel(team, row, partial) with a team for each of `rows` rows of `cols` columns. The
/// rank-0 View `sum` becomes the sum of all that the kernels add to `partial`. The order does not
/// depend on the number of threads.
template <class Kernel, class Sum>
void sum_each_row(const std::string& label, Size rows, Size cols, const Kernel& kernel,
                  const Sum& sum) {
  if constexpr (on_host)
    return detail::sum_in_parts(
        rows, rows * cols, sum, [&](const auto& space, Size parts, const auto& add_part) {
          using Team = typename TeamPolicy<std::decay_t<decltype(space)>>::member_type;
          Kokkos::parallel_for(label, row_policy(space, parts, cols), [=](const Team& team) {
            add_part(team.league_rank(), [&](Size i, auto& own) { kernel(team, i, own); });
          });
        });
  using Team = typename TeamPolicy<ExecSpace>::member_type;
  using Value = typename Sum::non_const_value_type;
  Kokkos::parallel_reduce(
      label, row_policy(ExecSpace(), rows, cols),
      KOKKOS_LAMBDA(const Team& team, Value& own) { kernel(team, team.league_rank(), own); }, sum);
}

/// Calls f(i, partial) for i in [0, n). The rank-0 View `sum` becomes the sum of all that the calls
/// add to `partial`. The order does not depend on the number of threads.
template <class F, class Sum>
void sum_each(const std::string& label, Size n, const F& f, const Sum& sum, Size work = -1) {
  if constexpr (on_host)
    return detail::sum_in_parts(
        n, work < 0 ? n : work, sum, [&](const auto& space, Size parts, const auto& add_part) {
          using Space = std::decay_t<decltype(space)>;
          Kokkos::parallel_for(
              label, Kokkos::RangePolicy<Space, Kokkos::IndexType<Size>>(space, Size{0}, parts),
              [=](Size part) { add_part(part, f); });
        });
  Kokkos::parallel_reduce(
      label, Kokkos::RangePolicy<ExecSpace, Kokkos::IndexType<Size>>(Size{0}, n), f, sum);
}

}  // namespace tessera
