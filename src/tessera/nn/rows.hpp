// SPDX-License-Identifier: Apache-2.0
// Kernels over the rows of matrices: loops and sums over the columns of a row, and sums over rows.
#pragma once

#include <algorithm>
#include <string>
#include <type_traits>

#include <tessera/base/for_each.hpp>

namespace tessera {

/// Elements of a vector of a host; a thread of a device has one.
template <class Math>
inline constexpr Size vector_lanes = on_host ? 32 / sizeof(Math) : 1;

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

/// Returns the distance from the elements that a loop over `width` of the columns of a matrix reads
/// to those that it should ask for: in rows that are read soon. 0: for none, because the matrix of
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
  if constexpr (sizeof...(E) == 0) return for_each_independent(n, f);
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
  Size ahead;                      ///< elements_ahead() of a matrix with the kernel's shape
  const detail::DeviceTeam* team;  ///< of a device

  /// Calls f(j) for j in [0, n). The calls must be independent. On a host, asks for elements ahead
  /// of those in `rows`, which are rows of large matrices that f reads.
  template <class F, class... E>
  KOKKOS_INLINE_FUNCTION void for_each(Size n, const F& f, const E*... rows) const {
    if constexpr (on_host)
      detail::for_each_on_host(n, f, ahead, rows...);
    else
      Kokkos::parallel_for(Kokkos::TeamVectorRange(*team, n), f);
  }
  /// Calls f(i) for the i in [0, n) with found(i), in their order. On a device the threads look for
  /// the next one together.
  template <class Found, class F>
  KOKKOS_INLINE_FUNCTION void for_each_found(Size n, const Found& found, const F& f) const {
    if constexpr (on_host) {
      for (Size i = 0; i < n; ++i)
        if (found(i)) f(i);
    } else {
      constexpr Size at_once = 2048;
      for (Size begin = 0; begin < n;) {
        const Size end = begin + at_once < n ? begin + at_once : n;
        Size next;
        const Kokkos::Min<Size, Kokkos::HostSpace> first(next);
        Kokkos::parallel_reduce(
            Kokkos::TeamVectorRange(*team, begin, end),
            [&](Size i, Size& least) { first.join(least, found(i) ? i : end); }, first);
        if (next < end) f(next);
        begin = next < end ? next + 1 : end;
      }
    }
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

/// Calls a function of rows: on a device with a team for each row.
template <class F>
struct OfRow {
  using value_type = double;  // of a reduction
  F f;
  Size ahead = 0;

  KOKKOS_INLINE_FUNCTION void operator()(Size number) const { f(Row{number, ahead, nullptr}); }
  KOKKOS_INLINE_FUNCTION void operator()(Size number, double& sum) const {
    f(Row{number, ahead, nullptr}, sum);
  }
  KOKKOS_INLINE_FUNCTION void operator()(const DeviceTeam& team) const {
    f(Row{team.league_rank(), 0, &team});
  }
  KOKKOS_INLINE_FUNCTION void operator()(const DeviceTeam& team, double& sum) const {
    f(Row{team.league_rank(), 0, &team}, sum);
  }
};

}  // namespace detail

/// Calls f(row) for each of `rows` rows of `cols` columns. f: KOKKOS_LAMBDA(const Row& row).
template <class F>
void for_rows(const std::string& label, Size rows, Size cols, const F& f) {
  if (rows == 0) return;
  if constexpr (on_host)
    for_each(label, rows, detail::OfRow<F>{f, elements_ahead(rows * cols, cols, cols)},
             rows * cols);
  else
    Kokkos::parallel_for(label, row_policy(ExecSpace(), rows, cols), detail::OfRow<F>{f});
}

/// The same, and `sum` becomes the sum of all that the calls f(row, partial) add to `partial` on
/// one thread of each row. f: KOKKOS_LAMBDA(const Row& row, double& partial).
template <class F, class Sum>
void sum_rows(const std::string& label, Size rows, Size cols, const F& f, const Sum& sum) {
  if constexpr (on_host)
    sum_each(label, rows, detail::OfRow<F>{f}, sum, rows * cols);
  else
    Kokkos::parallel_reduce(label, row_policy(ExecSpace(), rows, cols), detail::OfRow<F>{f}, sum);
}

/// Columns of a row that one thread of a team computes, with its vector lanes.
struct RowPart {
  Size number, first, width;
  Size ahead;                      ///< as in Row
  const detail::DeviceTeam* team;  ///< of a device

  /// Calls f(j) for the columns first + j, as Row::for_each() does.
  template <class F, class... E>
  KOKKOS_INLINE_FUNCTION void for_each(const F& f, const E*... rows) const {
    if constexpr (on_host)
      detail::for_each_on_host(width, f, ahead, rows...);
    else
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(*team, width), f);
  }
};

namespace detail {

template <class Math>
using PartialSums =
    Kokkos::View<Math*, ExecSpace::scratch_memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// Adds rows on the threads of a host, each of which takes some rows and, if there are few, some of
/// the columns. Kernels over rows and products share rows alike, so a thread finds its own in the
/// cache. The parts of the rows do not depend on the threads, nor do the sums.
template <class Math, int kinds, class F>
void sum_columns_on_host(const std::string& label, Size rows, Size cols, Size work, const F& f,
                         const Kokkos::Array<Math*, kinds>& sums, bool add) {
  constexpr Size most_parts = 16, least_rows = 64, widest = 1024;
  const Size parts = std::clamp<Size>(rows / least_rows, 1, most_parts);
  with_space_for(work, [&](const auto& space) {
    const Size blocks = (space.concurrency() + parts - 1) / parts;
    const Size width =
        std::clamp<Size>((cols + blocks - 1) / blocks, std::min<Size>(cols, 64), widest);
    const Size at_once = most_parts * widest / (parts * width) * width;
    Math partial_sums[most_parts * kinds * widest];
    Math* const partial = &partial_sums[0];
    for (Size first = 0; first < cols; first += at_once) {
      const Size columns = std::min(at_once, cols - first), across = (columns + width - 1) / width;
      Kokkos::parallel_for(label, range_policy(space, parts * across), [=](Size i) {
        const Range own = balanced_split(rows, parts, i / across);
        const Size begin = i % across * width, count = std::min(width, columns - begin);
        const Size ahead = elements_ahead(rows * cols, cols, count);
        Math* const mine = partial + i * kinds * width;
        std::fill_n(mine, kinds * count, Math(0));
        for (Size row = own.begin; row < own.end(); ++row)
          f(RowPart{row, first + begin, count, ahead, nullptr}, mine);
      });
      for (int kind = 0; kind < kinds; ++kind) {
        if (sums[kind] == nullptr) continue;
        Math* const out = sums[kind] + first;
        if (!add) std::fill_n(out, columns, Math(0));
        for (Size i = 0; i < parts * across; ++i) {
          const Size begin = i % across * width, count = std::min(width, columns - begin);
          const Math* const from = partial + i * kinds * width + kind * count;
          for_each_independent(count, [=](Size j) { out[begin + j] += from[j]; });
        }
      }
    }
  });
}

/// Adds the rows of a block of columns on a device. A team has the block. Its threads take rows in
/// turn, each with partial sums in a row of scratch memory, which are added in the order of the
/// threads.
template <class Math, int kinds, class F>
struct ColumnSums {
  F f;
  Kokkos::Array<Math*, kinds> sums;
  Size rows, cols, block;
  bool add;

  KOKKOS_INLINE_FUNCTION void operator()(const DeviceTeam& team) const {
    const Size number = team.league_rank(), thread = team.team_rank(), threads = team.team_size();
    const Size stride = kinds * block;
    Math* const partial = PartialSums<Math>(team.team_scratch(0), threads * stride).data();
    add_rows(number, thread, threads, &team, partial + thread * stride);
    team.team_barrier();
    store(Row{number, 0, &team}, partial, threads);
  }

 private:
  KOKKOS_INLINE_FUNCTION Range columns(Size number) const {
    const Size first = number * block;
    return {first, first + block < cols ? block : cols - first};
  }
  /// Adds every `step`-th row from `first` on to the partial sums of a thread.
  KOKKOS_INLINE_FUNCTION void add_rows(Size number, Size first, Size step, const DeviceTeam* team,
                                       Math* mine) const {
    const Range of = columns(number);
    const Size ahead = elements_ahead(rows * cols, cols, of.count);
    RowPart{0, 0, kinds * of.count, 0, team}.for_each([=](Size j) { mine[j] = 0; });
    for (Size i = first; i < rows; i += step) f(RowPart{i, of.begin, of.count, ahead, team}, mine);
  }
  /// Adds the partial sums of the threads of a block.
  KOKKOS_INLINE_FUNCTION void store(const Row& row, const Math* partial, Size threads) const {
    const Range of = columns(row.number);
    const Size stride = kinds * block;
    const bool adds = add;
    for (int kind = 0; kind < kinds; ++kind) {
      if (sums[kind] == nullptr) continue;
      Math* const out = sums[kind] + of.begin;
      const Math* const parts = partial + kind * of.count;
      row.for_each(of.count, [=](Size j) {
        Math sum = adds ? out[j] : Math(0);
        for (Size t = 0; t < threads; ++t) sum += parts[t * stride + j];
        out[j] = sum;
      });
    }
  }
};

}  // namespace detail

/// Makes one pass over rows and columns: f(part, partial) computes a part of a row and adds to
/// `partial` (kinds, part.width). Stores the sums over the rows in `sums`, (cols) for each kind, or
/// adds them if `add`; no sums if it is null. `work`: number of elements, which chooses the
/// execution space. f: KOKKOS_LAMBDA(const RowPart& part, Math* partial).
template <class Math, int kinds, class F>
void sum_columns(const std::string& label, Size rows, Size cols, Size work, const F& f,
                 Math* const (&sums)[kinds], bool add) {
  if (cols == 0) return;
  Kokkos::Array<Math*, kinds> to{};
  for (int kind = 0; kind < kinds; ++kind) to[kind] = sums[kind];
  if constexpr (on_host) {
    detail::sum_columns_on_host<Math, kinds>(label, rows, cols, work, f, to, add);
  } else {
    constexpr int threads = 8, lanes = 32;  // a block is as wide as a warp
    const Size scratch = detail::PartialSums<Math>::shmem_size(threads * kinds * lanes);
    const auto policy = TeamPolicy<ExecSpace>((cols + lanes - 1) / lanes, threads, lanes)
                            .set_scratch_size(0, Kokkos::PerTeam(scratch));
    Kokkos::parallel_for(label, policy,
                         detail::ColumnSums<Math, kinds, F>{f, to, rows, cols, lanes, add});
  }
}

}  // namespace tessera
