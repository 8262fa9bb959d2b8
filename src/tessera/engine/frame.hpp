// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/alias.hpp>
#include <tessera/engine/dataset.hpp>
#include <tessera/plan/pass.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// One microbatch of a step on this rank.
template <class T>
struct Microbatch {
  Matrix<const T> x, y;  ///< its rows
  Size rows = 0;
  Size global_rows = 0;  ///< of the whole batch
  Size number = 0;
};

/// The memory of a plan's activations, seen through its slots. Any number of rows up to the planned
/// one may be asked for. T: the compute type.
template <class T>
class Frame {
 public:
  Frame(const Plan& plan, Size rank)
      : memory_(allocate_vector<char>("tessera::activations", plan.stage(rank).frame_bytes)),
        model_ranks_(plan.input.mesh.size_of("model")),
        coordinate_(plan.model_coordinate(rank)) {
    const StagePlan& stage = plan.stage(rank);
    for (const Slot& slot : stage.slots)
      if (slot.in_frame() || slot.role == TensorRole::batch) slots_.push_back(local(slot, stage));
  }

  /// (rows of the rank, columns of the rank)
  Matrix<T> operator()(SlotId id, const Microbatch<T>& batch) const {
    const LocalSlot& slot = slots_[static_cast<std::size_t>(id)];
    return alias_matrix(slot.data + (batch.number % slot.copies) * slot.stride,
                        rows_of_slot(slot, batch), slot.columns);
  }
  /// The same, only read; also of the batch itself.
  Matrix<const T> read(SlotId id, const Microbatch<T>& batch) const {
    const LocalSlot& slot = slots_[static_cast<std::size_t>(id)];
    if (slot.data != nullptr || slot.columns == 0) return (*this)(id, batch);
    return id == slot_of_x ? batch.x : batch.y;
  }

 private:
  struct LocalSlot {
    T* data;  ///< of the first copy; none for the batch
    Size copies, stride;
    Size columns;
    bool by_rows;
  };

  LocalSlot local(const Slot& slot, const StagePlan& stage) const {
    const Size columns = slot.along_model.is_shard(1)
                             ? balanced_split(slot.shape[1], model_ranks_, coordinate_).count
                             : slot.shape[1];
    const bool by_rows = slot.along_model.is_shard(0);
    if (!slot.in_frame()) return {nullptr, 1, 0, columns, by_rows};
    const Storage& storage = stage.storages[static_cast<std::size_t>(slot.storage)];
    return {reinterpret_cast<T*>(memory_.data() + storage.offset), storage.copies,
            storage.stride / static_cast<Size>(sizeof(T)), columns, by_rows};
  }

  Size rows_of_slot(const LocalSlot& slot, const Microbatch<T>& batch) const {
    return slot.by_rows ? balanced_split(batch.rows, model_ranks_, coordinate_).count : batch.rows;
  }

  Vector<char> memory_;
  Size model_ranks_, coordinate_;
  std::vector<LocalSlot> slots_;  ///< those of the pass, which come first in a stage
};

}  // namespace tessera
