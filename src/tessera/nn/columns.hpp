// SPDX-License-Identifier: Apache-2.0
// Loops over the columns of a row in kernels with teams.
#pragma once

#include <algorithm>
#include <string>
#include <type_traits>

#include <tessera/base/for_each.hpp>

namespace tessera::detail {

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

/// Calls f(j) for the columns j in [0, n) of `range`, a range over the vector lanes of a team or of
/// a thread. The calls must be independent. On a host, a team has one thread.
template <class Range, class F>
KOKKOS_INLINE_FUNCTION void for_each_lane(const Range& range, Size n, const F& f) {
  if constexpr (on_host)
    for_each_independent(n, f);
  else
    Kokkos::parallel_for(range, f);
}

/// The same, and asks for the elements that are `ahead` of those in `rows`, unless `ahead` is 0.
/// Processors look ahead within a page of 4 KiB only: without this, loops over matrices beyond the
/// second cache take up to twice as long.
template <class Range, class F, class... E>
KOKKOS_INLINE_FUNCTION void for_each_lane(const Range& range, Size n, const F& f, Size ahead,
                                          const E*... rows) {
  if (ahead == 0) return for_each_lane(range, n, f);
  constexpr Size block = 128;
  for (Size begin = 0; begin < n; begin += block) {
    const Size count = n - begin < block ? n - begin : block;
    (prefetch(rows + begin + ahead, count), ...);
    for_each_independent(count, [&](Size j) { f(begin + j); });
  }
}

/// Returns the join of f(j) over the columns j in [0, n) of a row to all lanes of a team. Reducer:
/// Kokkos::Sum or Kokkos::Max. On a host, each lane of a vector has a partial result, because
/// compilers may not reorder sums; the order of joins depends on n only.
template <template <class, class> class Reducer, class Math, class Team, class F>
KOKKOS_INLINE_FUNCTION Math reduce_lanes(const Team& team, Size n, const F& f) {
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
        Kokkos::TeamVectorRange(team, n), [&](Size j, Math& part) { reducer.join(part, f(j)); },
        reducer);
    return result;
  }
}

template <class Math, class Space>
using PartialSums = Kokkos::View<Math*, typename Space::scratch_memory_space,
                                 Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// A team has a block of columns. Its threads take rows in turn, each with partial sums in a row of
/// scratch memory, which are added in the order of the threads.
template <class Math, int kinds, class Rows>
struct ColumnSums {
  Rows each;
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
    for (Size i = team.team_rank(); i < rows; i += threads) each(team, i, first, width, mine);
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

/// Makes one pass over rows and columns: each(team, i, first, width, partial) does row i of the
/// columns [first, first + width) on the vector lanes of a thread and adds to `partial` (kinds,
/// width). Stores the sums over the rows in `sums`, (cols) for each kind, or adds them if `add`; no
/// sums if it is null. `work`: number of elements, which chooses the execution space.
template <class Math, int kinds, class Rows>
void for_each_with_column_sums(const std::string& label, Size rows, Size cols, Size work,
                               const Rows& each, Math* const (&sums)[kinds], bool add) {
  if (cols == 0) return;
  with_space_for(work, [&](const auto& space) {
    using Space = std::decay_t<decltype(space)>;
    const Size block = column_block(cols, space.concurrency());
    const int threads = on_host ? 1 : 8;
    const Size scratch = PartialSums<Math, Space>::shmem_size(threads * kinds * block);
    const auto policy =
        TeamPolicy<Space>(space, (cols + block - 1) / block, threads, on_host ? 1 : 32)
            .set_scratch_size(0, Kokkos::PerTeam(scratch));
    ColumnSums<Math, kinds, Rows> kernel{each, {}, rows, cols, block, add};
    for (int kind = 0; kind < kinds; ++kind) kernel.sums[kind] = sums[kind];
    Kokkos::parallel_for(label, policy, kernel);
  });
}

}  // namespace tessera::detail
