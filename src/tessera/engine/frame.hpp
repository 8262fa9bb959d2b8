// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/alias.hpp>
#include <tessera/engine/dataset.hpp>
#include <tessera/plan/pass/pass.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// One microbatch of a step on this rank. T: the state type.
template <class T>
struct Microbatch {
  Matrix<const T> x, y;  ///< rows of its samples
  Size samples = 0;
  Size first = 0;           ///< number of its first sample in the whole batch
  Size global_samples = 0;  ///< samples of the whole batch
  Size number = 0;
  bool from_prior = false;  ///< see BatchFacts
};

/// The memory of a plan's activations, as Views of its slots. A microbatch may have fewer samples
/// than planned. The plan must outlive it. T: the compute type.
template <class T>
class Frame {
 public:
  using State = StateOf<T>;

  Frame(const Plan& plan, Size rank)
      : stage_(plan.stage(rank)),
        memory_(allocate_vector<char>("tessera::activations", stage_.frame_bytes)),
        model_ranks_(plan.input.mesh.size_of("model")),
        coordinate_(plan.model_coordinate(rank)) {}

  /// Returns a slot of the compute type: (rows of the rank, columns of the rank).
  Matrix<T> operator()(SlotId id, const Microbatch<State>& batch) const {
    return matrix<T>(id, batch);
  }
  /// Returns a slot of the state type.
  Matrix<State> sums(SlotId id, const Microbatch<State>& batch) const {
    return matrix<State>(id, batch);
  }
  /// Returns true if a slot has the state type and that differs from the compute type.
  bool holds_sums(SlotId id) const { return stage_.slots[id].type != dtype_of<T>(); }

  const Vector<char>& memory() const { return memory_; }

  /// Returns a slot to read. It may be the batch itself, if the batch has the compute type.
  Matrix<const T> read(SlotId id, const Microbatch<State>& batch) const {
    if constexpr (std::is_same_v<T, State>)
      if (is_batch(id)) return batch_itself(id, batch);
    return (*this)(id, batch);
  }
  Matrix<const State> read_sums(SlotId id, const Microbatch<State>& batch) const {
    return is_batch(id) ? batch_itself(id, batch) : sums(id, batch);
  }

 private:
  bool is_batch(SlotId id) const { return !stage_.slots[id].in_frame(); }
  static Matrix<const State> batch_itself(SlotId id, const Microbatch<State>& batch) {
    return id == slot_of_x ? batch.x : batch.y;
  }

  template <class E>
  Matrix<E> matrix(SlotId id, const Microbatch<State>& batch) const {
    const Slot& slot = stage_.slots[id];
    const Storage& storage = stage_.storages[slot.storage];
    char* const first = memory_.data() + storage.offset;
    return alias_matrix(
        reinterpret_cast<E*>(first + (batch.number % storage.copies) * storage.stride),
        share(batch.samples * slot.positions, slot.along_model.is_shard(0)),
        share(slot.shape[1], slot.along_model.is_shard(1)));
  }

  Size share(Size extent, bool split) const {
    return split ? balanced_split(extent, model_ranks_, coordinate_).count : extent;
  }

  const StagePlan& stage_;
  Vector<char> memory_;
  Size model_ranks_, coordinate_;
};

}  // namespace tessera
