// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/view.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/plan/layout/tensor_parts.hpp>

namespace tessera {

/// What one rank holds of a tensor, with its values: an alias. T: the state type.
template <class T>
struct LocalTensor : TensorPart {
  Vector<T> values;  ///< (kept.count)
};
template <class T>
LocalTensor<StateOf<T>> local_tensor(const Engine<T>& engine, const TensorPart& part);

/// The tensors of `role` that live in the engine of `rank`, in the order of the plan.
template <class T>
std::vector<LocalTensor<StateOf<T>>> local_tensors(const Plan& plan, Size rank,
                                                   const Engine<T>& engine, TensorRole role);

/// All elements of the tensors of `role`, one tensor after the other, each row-major and whole, on
/// every rank. Collective over the mesh; sent as one all-reduce, which the ledger counts.
template <class T>
Vector<StateOf<T>> whole_tensors(const Plan& plan, const Mesh& mesh, const Engine<T>& engine,
                                 TensorRole role);

}  // namespace tessera
