// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include <tessera/base/alias.hpp>
#include <tessera/tensor/parts.hpp>
#include <tessera/tensor/redistribute_along.hpp>

namespace tessera {
namespace {

/// Returns the messages of an all-to-all: the rank's part along `own`, cut along `cut`.
Parts exchanged(const Shape& group, int own, int cut, Size ranks, Size rank) {
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
      const Parts parts(group, after.dim(), ranks.size());
      if (!parts.contiguous()) pack(from, parts, packed, parts.all());
      return ranks.reduce_scatter(parts.contiguous() ? from : packed, to, ReduceOp::sum,
                                  parts.part_counts());
    }
    case Transition::all_gather: {
      const Parts parts(group, before.dim(), ranks.size());
      ranks.all_gather(from, parts.contiguous() ? to : packed, parts.part_counts());
      if (!parts.contiguous()) unpack(packed, parts, to, parts.all());
      return;
    }
    case Transition::all_to_all: {
      const Parts sent = exchanged(group, before.dim(), after.dim(), ranks.size(), me);
      const Parts received = exchanged(group, after.dim(), before.dim(), ranks.size(), me);
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
      return pack(from, Parts(group, after.dim(), ranks.size()), to, {me, 1});
    case Transition::mask:
      return me == 0 ? copy() : Kokkos::deep_copy(ExecSpace(), to, T(0));
    case Transition::embed:
      Kokkos::deep_copy(ExecSpace(), to, T(0));
      return unpack(from, Parts(group, before.dim(), ranks.size()), to, {me, 1});
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
