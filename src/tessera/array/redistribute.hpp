// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/array/redistribute_plan.hpp>
#include <tessera/array/sharded_tensor.hpp>

namespace tessera {

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
