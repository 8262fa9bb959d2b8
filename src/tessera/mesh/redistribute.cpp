// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include <tessera/base/alias.hpp>
#include <tessera/mesh/parts.hpp>
#include <tessera/mesh/redistribute.hpp>

namespace tessera {
namespace {

/// The block `shape` along dimension `dim` as the part of one coordinate.
Shape with_part(Shape shape, int dim, Size parts, Size coordinate) {
  Size& extent = shape[dim];
  extent = balanced_split(extent, parts, coordinate).count;
  return shape;
}

/// What an all-to-all sends: the rank's part along one dimension, cut along the other.
Parts exchanged(const Shape& group, int own, int cut, Size ranks, Size rank) {
  return {with_part(group, own, ranks, rank), cut, ranks};
}

/// One part of a tensor whose parts are contiguous: an alias.
template <class T>
Vector<T> slice_of(const Vector<T>& whole, const Parts& parts, Size part) {
  const Range range = balanced_split(parts.n, parts.count, part);
  const Size step = parts.outer * parts.inner;  // 0 where the tensor is empty
  return Kokkos::subview(whole, std::pair(range.begin * step, range.end() * step));
}

/// A tensor on its way: the block, and whether its memory is ours to overwrite.
template <class T>
struct Travelling {
  Vector<T> data;
  bool ours = false;
};

/// Aliases what can be shared; else carries the step out in new memory.
template <class T>
void take_step(Travelling<T>& tensor, const RedistributeStep& step, const Shape& group,
               const Communicator& comm) {
  const Size ranks = comm.size(), me = comm.rank();
  if (step.transition == Transition::slice && Parts(group, step.to.dim(), ranks).contiguous()) {
    tensor.data = slice_of(tensor.data, Parts(group, step.to.dim(), ranks), me);
    return;
  }
  if (step.transition == Transition::mask && me == 0) return;
  if (step.transition == Transition::all_reduce && tensor.ours) {
    comm.all_reduce(tensor.data);
    return;
  }
  const Shape own = step.to.is_shard() ? with_part(group, step.to.dim(), ranks, me) : group;
  const char* const label = "tessera::redistribute";
  const Vector<T> to = allocate_vector<T>(label, num_elements(own));
  const Size packed = packed_elements(step.from, step.to, group, ranks, me);
  redistribute_along(comm, step.from, step.to, group, tensor.data, to,
                     allocate_vector<T>(label, packed));
  tensor = {to, true};
}

template <class T>
ShardedTensor<T> travel(const ShardedTensor<T>& tensor, const Placements& to, bool ours) {
  const Mesh& mesh = tensor.mesh();
  Travelling<T> travelling{tensor.local(), ours};
  Placements now = tensor.placements();
  for (const RedistributeStep& step :
       plan_redistribute(tensor.global_shape(), now, to, mesh.shape(), mesh.rank())) {
    Placements group = now;
    group[step.axis] = Placement::replicate();
    const Block block = local_block(tensor.global_shape(), group, mesh.shape(), mesh.rank());
    take_step(travelling, step, block.extent, mesh.axis(step.axis));
    now[step.axis] = step.to;
  }
  return ShardedTensor<T>(mesh, tensor.global_shape(), to, travelling.data);
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

template <class T>
ShardedTensor<T> redistribute(const ShardedTensor<T>& tensor, const Placements& to) {
  return travel(tensor, to, false);
}

template <class T>
ShardedTensor<T> redistribute(ShardedTensor<T>&& tensor, const Placements& to) {
  return travel(tensor, to, tensor.local().use_count() == 1);
}

template <class T>
ShardedTensor<T> from_global(const Mesh& mesh, const Shape& shape, const Placements& placements,
                             const Vector<T>& full) {
  const ShardedTensor<T> everywhere(mesh, shape, replicated(mesh.shape()), full);
  return redistribute(everywhere, placements);
}

template <class T>
Vector<T> to_global(const ShardedTensor<T>& tensor) {
  return redistribute(tensor, replicated(tensor.mesh().shape())).local();
}

#define TESSERA_INSTANTIATE(T)                                                              \
  template void redistribute_along(const Communicator&, Placement, Placement, const Shape&, \
                                   const Vector<T>&, const Vector<T>&, const Vector<T>&);
TESSERA_FOR_COMPUTE_TYPES(TESSERA_INSTANTIATE)
TESSERA_INSTANTIATE(std::int32_t)
TESSERA_INSTANTIATE(std::int64_t)
#undef TESSERA_INSTANTIATE
#define TESSERA_INSTANTIATE(T)                                                        \
  template ShardedTensor<T> redistribute(const ShardedTensor<T>&, const Placements&); \
  template ShardedTensor<T> redistribute(ShardedTensor<T>&&, const Placements&);      \
  template ShardedTensor<T> from_global(const Mesh&, const Shape&, const Placements&, \
                                        const Vector<T>&);                            \
  template Vector<T> to_global(const ShardedTensor<T>&);
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double)
TESSERA_INSTANTIATE(std::int32_t)
TESSERA_INSTANTIATE(std::int64_t)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
