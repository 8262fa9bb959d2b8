// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/base/alias.hpp>
#include <tessera/base/for_each.hpp>
#include <tessera/tensor/redistribute_along.hpp>

namespace tessera {
namespace {

/// A row-major tensor (outer, n, inner) whose middle dimension is cut into parts. Whole memory is
/// (outer, n, inner). Packed memory is part after part, each (outer, n_p, inner).
struct Parts {
  Size outer = 1, inner = 1;
  Split n;

  Parts(const Shape& shape, Placement shard, Size parts) : n(split_of(shape, shard, parts)) {
    for (int d = 0; d < static_cast<int>(shape.size()); ++d)
      if (d != shard.dim()) (d < shard.dim() ? outer : inner) *= shape[static_cast<std::size_t>(d)];
  }

  Size elements() const { return outer * n.units * inner; }
  Range all() const { return {0, n.parts}; }
  /// Returns the elements of every part, as the counts of a collective.
  std::vector<Size> part_counts() const {
    std::vector<Size> counts;
    for (Size p = 0; p < n.parts; ++p) counts.push_back(outer * n.count(p) * inner);
    return counts;
  }
  /// Returns true if whole and packed memory have the same order.
  bool contiguous() const { return outer <= 1; }
};

// Made once: launches allocate no memory for labels.
const std::string pack_label = "tessera::pack";
const std::string unpack_label = "tessera::unpack";

/// Copies runs (outer index, part) between whole and packed memory. A team copies whole runs, so
/// that index divisions are per run, not per element.
template <class T, bool packs>
struct CopyRuns {
  Vector<T> whole;
  Vector<T> packed;
  Parts parts;
  Range which;  // the copied parts, with which packed memory begins

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const auto& [outer, inner, n] = parts;
    for (Size run = team.league_rank(); run < outer * which.count; run += team.league_size()) {
      const Size row = run / which.count;
      const Range part = n.place(which.begin + run - row * which.count);
      const Size length = part.count * inner, before = part.begin - n.place(which.begin).begin;
      T* const in_whole = whole.data() + (row * n.units + part.begin) * inner;
      T* const in_packed = packed.data() + outer * before * inner + row * length;
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
    Kokkos::parallel_for(packs ? pack_label : unpack_label, policy,
                         CopyRuns<T, packs>{whole, packed, parts, which});
  });
}

/// Copies the parts `which` of whole to packed memory; unpack() copies them back. Allocate nothing.
template <class T>
void pack(const Vector<T>& whole, const Parts& parts, const Vector<T>& packed, Range which) {
  copy_runs<T, true>(whole, packed, parts, which);
}

template <class T>
void unpack(const Vector<T>& packed, const Parts& parts, const Vector<T>& whole, Range which) {
  copy_runs<T, false>(whole, packed, parts, which);
}

/// Returns the messages of an all-to-all: the rank's part along `own`, cut along `cut`.
Parts exchanged(const Shape& group, Placement own, Placement cut, Size ranks, Size rank) {
  return {part_of(group, own, ranks, rank), cut, ranks};
}

}  // namespace

template <class T>
void redistribute_along(const Communicator& ranks, Placement before, Placement after,
                        const Shape& group, const Vector<T>& from, const Vector<T>& to,
                        const Vector<T>& packed) {
  const Size me = ranks.rank();
  const auto copy = [&] {
    if (from.data() != to.data()) Kokkos::deep_copy(ExecSpace(), to, from);
  };
  switch (transition(before, after)) {
    case Transition::keep:
      return copy();
    case Transition::all_reduce:
      copy();
      return ranks.all_reduce(to);
    case Transition::reduce_scatter: {
      const Parts parts(group, after, ranks.size());
      if (!parts.contiguous()) pack(from, parts, packed, parts.all());
      return ranks.reduce_scatter(parts.contiguous() ? from : packed, to, ReduceOp::sum,
                                  parts.part_counts());
    }
    case Transition::all_gather: {
      const Parts parts(group, before, ranks.size());
      ranks.all_gather(from, parts.contiguous() ? to : packed, parts.part_counts());
      if (!parts.contiguous()) unpack(packed, parts, to, parts.all());
      return;
    }
    case Transition::all_to_all: {
      const Parts sent = exchanged(group, before, after, ranks.size(), me);
      const Parts received = exchanged(group, after, before, ranks.size(), me);
      const Size leaving = sent.contiguous() ? 0 : sent.elements();
      const Vector<T> out = sent.contiguous() ? from : alias_vector(packed.data(), leaving);
      const Vector<T> in =
          received.contiguous() ? to : alias_vector(packed.data() + leaving, received.elements());
      if (!sent.contiguous()) pack(from, sent, out, sent.all());
      ranks.all_to_all(out, sent.part_counts(), in, received.part_counts());
      if (!received.contiguous()) unpack(in, received, to, received.all());
      return;
    }
    case Transition::slice:
      return pack(from, Parts(group, after, ranks.size()), to, {me, 1});
  }
}

#define TESSERA_INSTANTIATE(T)                                                              \
  template void redistribute_along(const Communicator&, Placement, Placement, const Shape&, \
                                   const Vector<T>&, const Vector<T>&, const Vector<T>&);
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
TESSERA_INSTANTIATE(std::int32_t)
TESSERA_INSTANTIATE(std::int64_t)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
