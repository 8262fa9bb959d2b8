// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/tensor/redistribute.hpp>
#include <tessera/tensor/redistribute_along.hpp>

namespace tessera {
namespace {

/// Returns a rank's part of a block as an alias; parts must be contiguous.
template <class T>
Vector<T> slice_of(const Vector<T>& whole, const Shape& block, Placement shard, Size ranks,
                   Size rank) {
  const Size n = block[static_cast<std::size_t>(shard.dim())];
  const Range range = split_of(block, shard, ranks).place(rank);
  const Size step = n == 0 ? 0 : num_elements(block) / n;
  return Kokkos::subview(whole, std::pair(range.begin * step, range.end() * step));
}

/// The piece between two steps. `ours`: its memory may be overwritten.
template <class T>
struct Travelling {
  Vector<T> data;
  bool ours = false;
};

/// Replaces the piece by an alias if possible, else carries the step out into new memory.
template <class T>
void take_step(Travelling<T>& tensor, const RedistributeStep& step, const Shape& group,
               const Communicator& comm) {
  const Size ranks = comm.size(), me = comm.rank();
  if (step.transition == Transition::slice && has_contiguous_parts(group, step.to.dim())) {
    tensor.data = slice_of(tensor.data, group, step.to, ranks, me);
    return;
  }
  if (step.transition == Transition::all_reduce && tensor.ours) {
    comm.all_reduce(tensor.data);
    return;
  }
  const Shape own = step.to.is_shard() ? part_of(group, step.to, ranks, me) : group;
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
    const Piece together = piece(tensor.global_shape(), cuts_of(group), mesh.shape(), mesh.rank());
    take_step(travelling, step, together.extent, mesh.axis(step.axis));
    now[step.axis] = step.to;
  }
  return ShardedTensor<T>(mesh, tensor.global_shape(), to, travelling.data);
}

}  // namespace

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
  return redistribute(ShardedTensor<T>(mesh, shape, replicated(mesh.shape()), full), placements);
}

template <class T>
Vector<T> to_global(const ShardedTensor<T>& tensor) {
  return redistribute(tensor, replicated(tensor.mesh().shape())).local();
}

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
