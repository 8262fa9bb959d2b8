// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>

#include <tessera/base/for_each.hpp>
#include <tessera/tensor/parts.hpp>

namespace tessera {
namespace {

// Made once: launches allocate no memory for labels.
const std::string pack_label = "tessera::pack";
const std::string unpack_label = "tessera::unpack";

/// Copies runs (outer index, part) between whole and packed memory. A team copies whole runs, so
/// that index divisions are per run, not per element.
template <class T, bool packs>
struct CopyRuns {
  Vector<T> whole;
  Vector<T> packed;
  Size outer, n, inner;      // as in Parts
  Size base, extra;          // of the balanced split, divided on the host
  Size first, runs_per_row;  // the copied parts; packed memory begins with part `first`

  KOKKOS_INLINE_FUNCTION Size begin_of(Size part) const {
    return part * base + (part < extra ? part : extra);
  }

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    for (Size run = team.league_rank(); run < outer * runs_per_row; run += team.league_size()) {
      const Size row = run / runs_per_row;
      const Size part = first + run - row * runs_per_row;
      const Size begin = begin_of(part);
      const Size length = (begin_of(part + 1) - begin) * inner;
      T* const in_whole = whole.data() + (row * n + begin) * inner;
      T* const in_packed = packed.data() + outer * (begin - begin_of(first)) * inner + row * length;
      const T* const from = packs ? in_whole : in_packed;
      T* const to = packs ? in_packed : in_whole;
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, length),
                           [=](const Size i) { to[i] = from[i]; });
    }
  }
};

template <class T, bool packs>
void copy_runs(const Vector<T>& whole, const Vector<T>& packed, const Parts& parts, Range which) {
  const Size runs = parts.outer * which.count;
  if (runs == 0 || packed.extent(0) == 0) return;
  constexpr Size max_league = 1 << 20;
  with_space_for(packed.extent(0), [&](const auto& space) {
    const Kokkos::TeamPolicy<std::decay_t<decltype(space)>> policy(
        space, static_cast<int>(std::min(runs, max_league)), Kokkos::AUTO);
    Kokkos::parallel_for(
        packs ? pack_label : unpack_label, policy,
        CopyRuns<T, packs>{whole, packed, parts.outer, parts.n, parts.inner, parts.n / parts.count,
                           parts.n % parts.count, which.begin, which.count});
  });
}

}  // namespace

Parts::Parts(const Shape& shape, int dim, Size parts) : count(parts) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const int position = static_cast<int>(d);
    (position < dim ? outer : position == dim ? n : inner) *= shape[d];
  }
}

std::vector<Size> Parts::part_counts() const {
  std::vector<Size> counts(count);
  for (Size p = 0; p < count; ++p) counts[p] = part_elements(p);
  return counts;
}

template <class T>
void pack(const Vector<T>& whole, const Parts& parts, const Vector<T>& packed, Range which) {
  copy_runs<T, true>(whole, packed, parts, which);
}

template <class T>
void unpack(const Vector<T>& packed, const Parts& parts, const Vector<T>& whole, Range which) {
  copy_runs<T, false>(whole, packed, parts, which);
}

#define TESSERA_INSTANTIATE(T)                                                 \
  template void pack(const Vector<T>&, const Parts&, const Vector<T>&, Range); \
  template void unpack(const Vector<T>&, const Parts&, const Vector<T>&, Range);
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
TESSERA_INSTANTIATE(std::int32_t)
TESSERA_INSTANTIATE(std::int64_t)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
