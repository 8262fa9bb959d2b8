// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/mesh/redistribute_plan.hpp>
#include <tessera/mesh/sharded_tensor.hpp>

namespace tessera {

/// One transition along one axis in memory of the caller: nothing is allocated, so that plans can
/// say where everything lies. `group` is the block that the ranks of `ranks` hold together, `from`
/// this rank's part of it (its term, where Partial) and `to` what becomes of it. `to` may be `from`
/// for an all-reduce. The terms in `from` are lost in a reduce-scatter. `packed` has
/// packed_elements(), and no memory where there are none. Collective over `ranks`. Also for
/// BFloat16 and Float16, which no reduction takes.
template <class T>
void redistribute_along(const Communicator& ranks, Placement before, Placement after,
                        const Shape& group, const Vector<T>& from, const Vector<T>& to,
                        const Vector<T>& packed);

/// The same tensor with other placements, along the steps of plan_redistribute(): the ledger shows
/// exactly its collectives. Collective over the mesh.
///
/// Nothing is copied that can be shared: equal placements, axes of size 1, slices of a contiguous
/// part and the unmasked rank of Replicate -> Partial give an alias of the tensor's memory.
/// Defined for float, double, int32 and int64.
template <class T>
ShardedTensor<T> redistribute(const ShardedTensor<T>& tensor, const Placements& to);
/// The same; reduces in the memory of `tensor` if nothing else refers to it.
template <class T>
ShardedTensor<T> redistribute(ShardedTensor<T>&& tensor, const Placements& to);

/// A tensor from its full array, which every rank has; rank r keeps its block. Along Partial axes
/// the rank with coordinate 0 holds the values, the others zeros. No communication.
template <class T>
ShardedTensor<T> from_global(const Mesh& mesh, const Shape& shape, const Placements& placements,
                             const Vector<T>& full);

/// The full array, flat and row-major, on every rank. Collective over the mesh.
template <class T>
Vector<T> to_global(const ShardedTensor<T>& tensor);

}  // namespace tessera
