// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/alias.hpp>
#include <tessera/base/view.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/plan/layout/tensor_parts.hpp>

namespace tessera {

/// The part of a parameter, gradient or moment on one rank, with its values. T: the state type.
template <class T>
struct LocalTensor : TensorPart {
  Vector<T> values;  ///< (kept.count); aliases the engine's memory

  /// Returns the elements `owned` of the piece.
  Vector<T> owned_values() const {
    return alias_vector(values.data() + (owned.begin - kept.begin), owned.count);
  }
};
/// Returns a part of engine.plan() with its values, which have the state type.
template <class T>
LocalTensor<StateOf<T>> local_tensor(const Engine<T>& engine, const TensorPart& part);
/// Calls f with a part of engine.plan() with its values in the type of its slot: the state type, or
/// bf16 for moments that are kept so.
template <class T, class F>
void with_local_tensor(const Engine<T>& engine, const TensorPart& part, const F& f) {
  if (!is_half(part.slot.type)) return f(local_tensor(engine, part));
  const Vector<BFloat16> all = engine.optimizer().bf16_moment(part.moment);
  f(LocalTensor<BFloat16>{part, alias_vector(all.data() + part.place.begin, part.place.count)});
}

/// Returns the concatenation of all whole tensors of `role`, each row-major, in the order of the
/// model, on every rank. Collective over the mesh: one all-reduce, which the ledger counts.
template <class T>
Vector<StateOf<T>> whole_tensors(const Plan& plan, const Mesh& mesh, const Engine<T>& engine,
                                 TensorRole role);

}  // namespace tessera
