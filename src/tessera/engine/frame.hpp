// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/alias.hpp>
#include <tessera/engine/dataset.hpp>
#include <tessera/plan/pass.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// One microbatch of a step on this rank. T: the state type.
template <class T>
struct Microbatch {
  Matrix<const T> x, y;  ///< its rows
  Size samples = 0;
  Size first = 0;           ///< number of its first sample in the whole batch
  Size global_samples = 0;  ///< of the whole batch
  Size number = 0;
  bool from_prior = false;  ///< as in BatchFacts
};

/// The memory of a plan's activations, seen through its slots. Any number of samples up to the
/// planned one may be asked for. T: the compute type.
template <class T>
class Frame {
 public:
  using State = StateOf<T>;

  Frame(const Plan& plan, Size rank)
      : memory_(allocate_vector<char>("tessera::activations", plan.stage(rank).frame_bytes)),
        model_ranks_(plan.input.mesh.size_of("model")),
        coordinate_(plan.model_coordinate(rank)) {
    const StagePlan& stage = plan.stage(rank);
    for (const Slot& slot : stage.slots)
      if (slot.in_frame() || slot.role == TensorRole::batch) slots_.push_back(local(slot, stage));
  }

  /// (rows of the rank, columns of the rank) of a slot of the compute type
  Matrix<T> operator()(SlotId id, const Microbatch<State>& batch) const {
    return matrix<T>(id, batch);
  }
  /// The same of one of the state type.
  Matrix<State> sums(SlotId id, const Microbatch<State>& batch) const {
    return matrix<State>(id, batch);
  }
  /// Whether what a slot holds has the state type, and that is not the compute type.
  bool holds_sums(SlotId id) const { return slot(id).type != dtype_of<T>(); }

  /// Only read: also the batch itself, where its type is that of layers.
  Matrix<const T> read(SlotId id, const Microbatch<State>& batch) const {
    if constexpr (std::is_same_v<T, State>)
      if (is_batch(id)) return batch_itself(id, batch);
    return (*this)(id, batch);
  }
  Matrix<const State> read_sums(SlotId id, const Microbatch<State>& batch) const {
    return is_batch(id) ? batch_itself(id, batch) : sums(id, batch);
  }

 private:
  struct LocalSlot {
    char* data;  ///< of the first copy; none for the batch
    Size copies, stride;
    Size columns;
    Size positions;
    bool by_rows;
    bool is_batch;
    DType type;
  };

  LocalSlot local(const Slot& slot, const StagePlan& stage) const {
    const Size columns = slot.along_model.is_shard(1)
                             ? balanced_split(slot.shape[1], model_ranks_, coordinate_).count
                             : slot.shape[1];
    const bool by_rows = slot.along_model.is_shard(0);
    if (!slot.in_frame()) return {nullptr, 1, 0, columns, slot.positions, by_rows, true, slot.type};
    const Storage& storage = stage.storages[slot.storage];
    return {memory_.data() + storage.offset,
            storage.copies,
            storage.stride,
            columns,
            slot.positions,
            by_rows,
            false,
            slot.type};
  }

  const LocalSlot& slot(SlotId id) const { return slots_[id]; }
  bool is_batch(SlotId id) const { return slot(id).is_batch; }
  static Matrix<const State> batch_itself(SlotId id, const Microbatch<State>& batch) {
    return id == slot_of_x ? batch.x : batch.y;
  }

  template <class E>
  Matrix<E> matrix(SlotId id, const Microbatch<State>& batch) const {
    const LocalSlot& of = slot(id);
    char* const data = of.data + (batch.number % of.copies) * of.stride;
    return alias_matrix(reinterpret_cast<E*>(data), rows_of_slot(of, batch), of.columns);
  }

  Size rows_of_slot(const LocalSlot& slot, const Microbatch<State>& batch) const {
    const Size rows = batch.samples * slot.positions;
    return slot.by_rows ? balanced_split(rows, model_ranks_, coordinate_).count : rows;
  }

  Vector<char> memory_;
  Size model_ranks_, coordinate_;
  std::vector<LocalSlot> slots_;  ///< those of the pass, which come first in a stage
};

}  // namespace tessera
