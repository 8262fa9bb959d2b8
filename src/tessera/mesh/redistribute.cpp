// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <span>

#include <tessera/mesh/parts.hpp>
#include <tessera/mesh/redistribute.hpp>

namespace tessera {
namespace {

template <class T>
Vector<T> uninitialized(Size n) {
  return Vector<T>(Kokkos::view_alloc(Kokkos::WithoutInitializing, "tessera::redistribute"),
                   static_cast<std::size_t>(n));
}

template <class T>
Vector<T> zeros(Size n) {
  return Vector<T>("tessera::redistribute", static_cast<std::size_t>(n));
}

/// A tensor on its way: the block, and whether its memory is ours to overwrite.
template <class T>
struct Travelling {
  Vector<T> data;
  bool ours = false;

  void replace(const Vector<T>& other) {
    data = other;
    ours = true;
  }
};

template <class T>
void all_reduce(Travelling<T>& tensor, const Communicator& comm) {
  if (!tensor.ours) {
    const Vector<T> copy = uninitialized<T>(static_cast<Size>(tensor.data.extent(0)));
    Kokkos::deep_copy(ExecSpace(), copy, tensor.data);
    tensor.replace(copy);
  }
  comm.all_reduce(tensor.data);
}

template <class T>
void reduce_scatter(Travelling<T>& tensor, const Parts& parts, const Communicator& comm) {
  Vector<T> packed = tensor.data;
  if (!parts.contiguous()) {
    packed = uninitialized<T>(parts.elements());
    pack(tensor.data, parts, packed);
  }
  const Vector<T> own = uninitialized<T>(parts.part_elements(comm.rank()));
  comm.reduce_scatter(packed, own, parts.part_counts());
  tensor.replace(own);
}

template <class T>
void all_gather(Travelling<T>& tensor, const Parts& parts, const Communicator& comm) {
  const Vector<T> packed = uninitialized<T>(parts.elements());
  comm.all_gather(tensor.data, packed, parts.part_counts());
  tensor.replace(packed);
  if (parts.contiguous()) return;
  const Vector<T> whole = uninitialized<T>(parts.elements());
  unpack(packed, parts, whole);
  tensor.replace(whole);
}

/// Sends the parts along the new dimension, receives the parts along the old one.
template <class T>
void all_to_all(Travelling<T>& tensor, const Parts& sent, const Parts& received,
                const Communicator& comm) {
  Vector<T> out = tensor.data;
  if (!sent.contiguous()) {
    out = uninitialized<T>(sent.elements());
    pack(tensor.data, sent, out);
  }
  const Vector<T> packed = uninitialized<T>(received.elements());
  comm.all_to_all(out, sent.part_counts(), packed, received.part_counts());
  tensor.replace(packed);
  if (received.contiguous()) return;
  const Vector<T> whole = uninitialized<T>(received.elements());
  unpack(packed, received, whole);
  tensor.replace(whole);
}

/// The block `shape` along dimension `dim` as the part of one coordinate.
Shape with_part(Shape shape, int dim, Size parts, Size coordinate) {
  Size& extent = shape[static_cast<std::size_t>(dim)];
  extent = balanced_split(extent, parts, coordinate).count;
  return shape;
}

/// `group`: the block that the ranks along the axis hold together.
template <class T>
void take_step(Travelling<T>& tensor, const RedistributeStep& step, const Shape& group,
               const Communicator& comm) {
  const Size ranks = comm.size();
  const Size me = comm.rank();
  const auto parts_along = [&](int dim) { return Parts(group, dim, ranks); };
  switch (step.transition) {
    case Transition::keep:
      break;
    case Transition::all_reduce:
      all_reduce(tensor, comm);
      break;
    case Transition::reduce_scatter: {
      reduce_scatter(tensor, parts_along(step.to.dim()), comm);
      break;
    }
    case Transition::all_gather:
      all_gather(tensor, parts_along(step.from.dim()), comm);
      break;
    case Transition::all_to_all: {
      const int before = step.from.dim();
      const int after = step.to.dim();
      all_to_all(tensor, Parts(with_part(group, before, ranks, me), after, ranks),
                 Parts(with_part(group, after, ranks, me), before, ranks), comm);
      break;
    }
    case Transition::slice: {
      const Parts parts = parts_along(step.to.dim());
      tensor.ours = tensor.ours || !parts.contiguous();
      tensor.data = take_part(tensor.data, parts, me);
      break;
    }
    case Transition::mask: {
      if (me != 0) tensor.replace(zeros<T>(static_cast<Size>(tensor.data.extent(0))));
      break;
    }
    case Transition::embed: {
      const Parts parts = parts_along(step.from.dim());
      const Vector<T> whole = zeros<T>(parts.elements());
      put_part(tensor.data, parts, me, whole);
      tensor.replace(whole);
      break;
    }
  }
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
