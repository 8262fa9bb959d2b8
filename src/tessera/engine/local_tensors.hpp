// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/base/view.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// What one rank holds of a parameter, its gradient or a moment of it: an alias. T: the state type.
template <class T>
struct LocalTensor {
  Slot slot;
  Block block;         ///< the rank's part along `model`
  Range kept;          ///< of the block's elements in row-major order
  Range owned;         ///< those of them that no other rank with the same block counts as its own
  bool counts = true;  ///< false: a rank with another coordinate along `model` counts this block
  Vector<T> values;    ///< (kept.count)
};

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
