// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/view.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/plan/layout/tensor_parts.hpp>

namespace tessera {

/// The part of a tensor on one rank with its values, which alias the engine's memory. T: the state
/// type.
template <class T>
struct LocalTensor : TensorPart {
  Vector<T> values;  ///< (kept.count)
};
template <class T>
LocalTensor<StateOf<T>> local_tensor(const Engine<T>& engine, const TensorPart& part);

/// Returns the parts of `role` on `rank`, in the order of the plan.
template <class T>
std::vector<LocalTensor<StateOf<T>>> local_tensors(const Plan& plan, Size rank,
                                                   const Engine<T>& engine, TensorRole role);

/// Returns all elements of the tensors of `role` on every rank: the tensors of the model in order,
/// each whole and row-major. Collective over the mesh: one all-reduce, which the ledger counts.
template <class T>
Vector<StateOf<T>> whole_tensors(const Plan& plan, const Mesh& mesh, const Engine<T>& engine,
                                 TensorRole role);

}  // namespace tessera
