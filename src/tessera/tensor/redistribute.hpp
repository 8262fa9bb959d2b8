// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/tensor/redistribute_plan.hpp>
#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera {

/// Returns the tensor with other placements, Partial only where it is. Takes the steps of
/// plan_redistribute(), so that the ledger shows exactly their collectives. Collective over the
/// mesh.
///
/// The result is an alias of the tensor's memory where it can be: for equal placements, axes of
/// size 1, and slices of a contiguous part. Defined for float, double, int32 and int64.
template <class T>
ShardedTensor<T> redistribute(const ShardedTensor<T>& tensor, const Placements& to);
/// The same, but reduces in the memory of `tensor` if nothing else refers to it. A parameter by
/// value would not do: a View that is moved from still counts.
template <class T>
ShardedTensor<T> redistribute(ShardedTensor<T>&& tensor, const Placements& to);

/// Returns a tensor from its full array, which every rank must have. No communication.
template <class T>
ShardedTensor<T> from_global(const Mesh& mesh, const Shape& shape, const Placements& placements,
                             const Vector<T>& full);

/// Returns the full array, flat and row-major, on every rank. Collective over the mesh.
template <class T>
Vector<T> to_global(const ShardedTensor<T>& tensor);

}  // namespace tessera
