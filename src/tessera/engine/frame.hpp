// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include <tessera/base/alias.hpp>
#include <tessera/engine/dataset.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/plan/pass/pass.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// One microbatch of a step on this rank. T: the state type.
template <class T>
struct Microbatch {
  Matrix<const T> x, y;     ///< rows of its samples; columns as in Batch
  Size samples = 0;         ///< samples of this rank in the microbatch
  Size first = 0;           ///< number of its first sample in the whole batch
  Size global_samples = 0;  ///< samples of the whole batch, not of the microbatch
  Size number = 0;          ///< number of the microbatch
  bool from_prior = false;  ///< BatchFacts::from_prior
  const BatchSamples* of_batch = nullptr;

  /// Returns BatchSamples::in().
  Size samples_of(AxisSet axes) const { return of_batch->in(number, axes); }
};

/// The memory of activations, their gradients and scratch (StagePlan::storages), and Views of the
/// slots in it. A microbatch may have fewer samples than planned. The plan must outlive the frame.
/// T: the compute type.
template <class T>
class Frame {
 public:
  using State = StateOf<T>;

  Frame(const Plan& plan, Size rank)
      : mesh_(plan.input.mesh),
        rank_(rank),
        stage_(plan.stage(rank)),
        memory_(allocate_vector<char>("tessera::activations", stage_.frame_bytes)),
        extents_(stage_.slots.size()) {}

  /// Returns true if a slot has the compute type; else it has the state type.
  bool has_compute_type(SlotId id) const { return stage_.slots[id].type == dtype_of<T>(); }

  /// Returns the samples that a slot has in the microbatch.
  Size samples_of(SlotId id, const Microbatch<State>& batch) const {
    return batch.samples_of(stage_.slots[id].sample_axes);
  }

  /// Return a slot of the compute type and a slot of the state type: (the rank's rows in this
  /// microbatch, the rank's columns). The batch is not in the frame and cannot be returned.
  Matrix<T> operator()(SlotId id, const Microbatch<State>& batch) const {
    return matrix<T>(id, batch);
  }
  Matrix<State> in_state_type(SlotId id, const Microbatch<State>& batch) const {
    return matrix<State>(id, batch);
  }
  /// Return the same Views to read. `id` may also be slot_of_x or slot_of_y, which have the state
  /// type.
  Matrix<const T> read(SlotId id, const Microbatch<State>& batch) const {
    if constexpr (std::is_same_v<T, State>)
      if (is_batch(id)) return batch_itself(id, batch);
    return (*this)(id, batch);
  }
  Matrix<const State> read_in_state_type(SlotId id, const Microbatch<State>& batch) const {
    return is_batch(id) ? batch_itself(id, batch) : in_state_type(id, batch);
  }

  const Vector<char>& memory() const { return memory_; }

 private:
  bool is_batch(SlotId id) const { return !stage_.slots[id].in_frame(); }
  static Matrix<const State> batch_itself(SlotId id, const Microbatch<State>& batch) {
    return id == slot_of_x ? batch.x : batch.y;
  }

  template <class E>
  Matrix<E> matrix(SlotId id, const Microbatch<State>& batch) const {
    const Slot& slot = stage_.slots[id];
    const Storage& storage = stage_.storages[slot.storage];
    const Extents& extents = extents_of(id, samples_of(id, batch));
    E* const first = reinterpret_cast<E*>(memory_.data() + storage.place(batch.number));
    return alias_matrix(first + extents.offset, extents.rows, extents.columns);
  }

  /// The extents of a slot in the latest microbatch that used it. Most microbatches have equally
  /// many samples, so that a warm step computes no shapes.
  struct Extents {
    Size samples = -1;
    Size rows = 0, columns = 0;
    Size offset = 0;  ///< elements before it (Slot::piece_of)
  };
  const Extents& extents_of(SlotId id, Size samples) const {
    Extents& extents = extents_[static_cast<std::size_t>(id)];
    if (extents.samples != samples) {
      const Shape shape = local_shape(stage_.slots[id], samples, mesh_, rank_);
      extents = {samples, num_elements({shape.begin(), shape.end() - 1}), shape.back(),
                 offset_in_whole(stage_.slots[id], samples, mesh_, rank_)};
    }
    return extents;
  }

  const MeshShape& mesh_;
  Size rank_;
  const StagePlan& stage_;
  Vector<char> memory_;
  mutable std::vector<Extents> extents_;  ///< by slot
};

}  // namespace tessera
