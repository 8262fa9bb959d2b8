// SPDX-License-Identifier: Apache-2.0
// Kernels over the rows of matrices: loops and sums over the columns of a row, and sums over rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>

#include <tessera/base/for_each.hpp>

namespace tessera {

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

/// Elements of a vector of a host; a thread of a device has one.
template <class Math>
inline constexpr Size vector_lanes = on_host ? 32 / sizeof(Math) : 1;

/// Calls f(j) for j in [0, n) on the calling thread. The calls must be independent: the compiler is
/// told so and vectorises the loop without checks for aliases.
template <class F>
KOKKOS_INLINE_FUNCTION void for_each_independent(Size n, const F& f) {
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC ivdep
#endif
  for (Size j = 0; j < n; ++j) f(j);
}

/// Asks a host for n elements that will be read soon.
template <class E>
KOKKOS_INLINE_FUNCTION void prefetch(const E* elements, Size n) {
#if defined(__GNUC__) && !defined(__CUDACC__)
  constexpr Size line = 64 / sizeof(E);
  for (Size j = 0; j < n; j += line)
    __builtin_prefetch(elements + j, 0, 2);  // into the second cache
#else
  (void)elements, (void)n;
#endif
}

/// Returns the elements from those that a loop over `width` of the columns of a matrix reads to
/// those that it should ask for: in rows that are read soon. 0: for none, because the matrix of
/// `size` elements fits the second cache, or a device reads it.
KOKKOS_INLINE_FUNCTION Size elements_ahead(Size size, Size cols, Size width) {
  constexpr Size cached = 1 << 18, distance = 512;
  if (!on_host || size < cached) return 0;
  return width == cols ? distance : (distance + width - 1) / width * cols;
}

namespace detail {
using DeviceTeam = TeamPolicy<ExecSpace>::member_type;

/// Calls f(j) on a host, and asks for the elements that are `ahead` of those in `rows`, unless
/// `ahead` is 0. Processors look ahead within a page of 4 KiB only: without this, loops over
/// matrices beyond the second cache take up to twice as long.
template <class F, class... E>
KOKKOS_INLINE_FUNCTION void for_each_on_host(Size n, const F& f, Size ahead, const E*... rows) {
  const Size block = ahead == 0 ? n : 128;
  for (Size begin = 0; begin < n; begin += block) {
    const Size count = n - begin < block ? n - begin : block;
    if (ahead != 0) (prefetch(rows + begin + ahead, count), ...);
    // One loop for both cases: of two copies of f, GCC may vectorise only one.
    for_each_independent(count, [&](Size j) { f(begin + j); });
  }
}
}  // namespace detail

/// A row that a kernel computes with a team of threads, or on a host with one thread.
struct Row {
  Size number;
  const detail::DeviceTeam* team;  ///< of a device

  /// Calls f(j) for j in [0, n). The calls must be independent. `ahead` and `rows`: as in
  /// elements_ahead().
  template <class F, class... E>
  KOKKOS_INLINE_FUNCTION void for_each(Size n, const F& f, Size ahead = 0, const E*... rows) const {
    if constexpr (on_host)
      detail::for_each_on_host(n, f, ahead, rows...);
    else
      Kokkos::parallel_for(Kokkos::TeamVectorRange(*team, n), f);
  }
  /// Returns the sum, or the largest, of f(j) for j in [0, n) to all threads. The order depends on
  /// n only.
  template <class Math, class F>
  KOKKOS_INLINE_FUNCTION Math sum(Size n, const F& f) const {
    return reduce<Kokkos::Sum, Math>(n, f);
  }
  template <class Math, class F>
  KOKKOS_INLINE_FUNCTION Math max(Size n, const F& f) const {
    return reduce<Kokkos::Max, Math>(n, f);
  }
  /// Calls f() on one thread.
  template <class F>
  KOKKOS_INLINE_FUNCTION void once(const F& f) const {
    if constexpr (on_host)
      f();
    else
      Kokkos::single(Kokkos::PerTeam(*team), f);
  }
  /// Waits until all threads are here.
  KOKKOS_INLINE_FUNCTION void wait() const {
    if (!on_host) team->team_barrier();
  }

 private:
  /// On a host, each lane of a vector has a partial result, because compilers may not reorder sums.
  template <template <class, class> class Reducer, class Math, class F>
  KOKKOS_INLINE_FUNCTION Math reduce(Size n, const F& f) const {
    if constexpr (on_host) {
      constexpr Size lanes = vector_lanes<Math>;
      Math parts[lanes];
      const Reducer<Math, Kokkos::HostSpace> reducer(parts[0]);
      for (Math& part : parts) reducer.init(part);
      // Stores the join in any case: a branch for the larger one would often be mispredicted.
      const auto join = [&](Math& part, Math value) {
        Math joined = part;
        reducer.join(joined, value);
        part = joined;
      };
      Size j = 0;
      for (; j + lanes <= n; j += lanes) {
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC unroll 1
#endif
        for (Size lane = 0; lane < lanes; ++lane) join(parts[lane], f(j + lane));
      }
      for (; j < n; ++j) join(parts[j % lanes], f(j));
      for (Size lane = 1; lane < lanes; ++lane) join(parts[0], parts[lane]);
      return parts[0];
    } else {
      Math result;
      const Reducer<Math, Kokkos::HostSpace> reducer(result);
      Kokkos::parallel_reduce(
          Kokkos::TeamVectorRange(*team, n), [&](Size j, Math& part) { reducer.join(part, f(j)); },
          reducer);
      return result;
    }
  }
};

namespace detail {
template <class Team>
KOKKOS_INLINE_FUNCTION Row row_of_team(const Team& team, Size number) {
  if constexpr (on_host)
    return {number, nullptr};
  else
    return {number, &team};
}

template <class F>
struct OfRow {
  F f;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    f(row_of_team(team, team.league_rank()));
  }
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, Size number, double& sum) const {
    f(row_of_team(team, number), sum);
  }
};
}  // namespace detail

/// Calls f(row) for each of `rows` rows of `cols` columns. f: KOKKOS_LAMBDA(const Row& row).
template <class F>
void for_rows(const std::string& label, Size rows, Size cols, const F& f) {
  for_each_row(label, rows, cols, detail::OfRow<F>{f});
}

/// The same, and `sum` becomes the sum of all that the calls f(row, partial) add to `partial` on
/// one thread of each row. f: KOKKOS_LAMBDA(const Row& row, double& partial).
template <class F, class Sum>
void sum_rows(const std::string& label, Size rows, Size cols, const F& f, const Sum& sum) {
  sum_each_row(label, rows, cols, detail::OfRow<F>{f}, sum);
}

/// Columns of a row that one thread of a team computes, with its vector lanes.
struct RowPart {
  Size number, first, width;
  const detail::DeviceTeam* team;  ///< of a device

  /// Calls f(j) for the columns first + j, as Row::for_each() does.
  template <class F, class... E>
  KOKKOS_INLINE_FUNCTION void for_each(const F& f, Size ahead = 0, const E*... rows) const {
    if constexpr (on_host)
      detail::for_each_on_host(width, f, ahead, rows...);
    else
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(*team, width), f);
  }
};

namespace detail {

template <class Math, class Space>
using PartialSums = Kokkos::View<Math*, typename Space::scratch_memory_space,
                                 Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// A team has a block of columns. Its threads take rows in turn, each with partial sums in a row of
/// scratch memory, which are added in the order of the threads.
template <class Math, int kinds, class F>
struct ColumnSums {
  F f;
  Kokkos::Array<Math*, kinds> sums;
  Size rows, cols, block;
  bool add;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const Size first = team.league_rank() * block;
    const Size width = first + block < cols ? block : cols - first;
    const Size threads = team.team_size(), stride = kinds * block;
    using Space = typename Team::execution_space;
    Math* const partial = PartialSums<Math, Space>(team.team_scratch(0), threads * stride).data();
    Math* const mine = partial + team.team_rank() * stride;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, kinds * width),
                         [=](Size j) { mine[j] = 0; });
    for (Size i = team.team_rank(); i < rows; i += threads)
      f(RowPart{i, first, width, row_of_team(team, i).team}, mine);
    team.team_barrier();
    for (int kind = 0; kind < kinds; ++kind) {
      if (sums[kind] == nullptr) continue;
      Math* const out = sums[kind] + first;
      const Math* const parts = partial + kind * width;
      const bool adds = add;
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, width), [=](Size j) {
        Math sum = adds ? out[j] : Math(0);
        for (Size t = 0; t < threads; ++t) sum += parts[t * stride + j];
        out[j] = sum;
      });
    }
  }
};

/// Returns the columns of a team: a warp's width on a device. On a host, an equal share of each
/// thread, but at least 64 for vectors and at most 1024, so that partial sums fit the first cache.
inline Size column_block(Size cols, Size threads) {
  if (!on_host) return 32;
  return std::clamp<Size>((cols + threads - 1) / threads, std::min<Size>(cols, 64), 1024);
}

}  // namespace detail

/// Makes one pass over rows and columns: f(part, partial) computes a part of a row and adds to
/// `partial` (kinds, part.width). Stores the sums over the rows in `sums`, (cols) for each kind, or
/// adds them if `add`; no sums if it is null. `work`: number of elements, which chooses the
/// execution space. f: KOKKOS_LAMBDA(const RowPart& part, Math* partial).
template <class Math, int kinds, class F>
void sum_columns(const std::string& label, Size rows, Size cols, Size work, const F& f,
                 Math* const (&sums)[kinds], bool add) {
  if (cols == 0) return;
  with_space_for(work, [&](const auto& space) {
    using Space = std::decay_t<decltype(space)>;
    const Size block = detail::column_block(cols, space.concurrency());
    const int threads = on_host ? 1 : 8;
    const Size scratch = detail::PartialSums<Math, Space>::shmem_size(threads * kinds * block);
    const auto policy =
        TeamPolicy<Space>(space, (cols + block - 1) / block, threads, on_host ? 1 : 32)
            .set_scratch_size(0, Kokkos::PerTeam(scratch));
    detail::ColumnSums<Math, kinds, F> kernel{f, {}, rows, cols, block, add};
    for (int kind = 0; kind < kinds; ++kind) kernel.sums[kind] = sums[kind];
    Kokkos::parallel_for(label, policy, kernel);
  });
}

}  // namespace tessera
