// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <tessera/engine/engine.hpp>
#include <tessera/plan/checkpoint_plan.hpp>

namespace tessera {

/// What a rank writes of a checkpoint, as it was between two steps: a copy in host memory, as large
/// as checkpoint_bytes() says, which is kept for the next one.
class Snapshot {
 public:
  template <class T>
  void take(const Engine<T>& engine, Size rank);

  const std::vector<CheckpointTensor>& tensors() const { return tensors_; }
  /// Of this rank's elements.
  Size bytes() const { return static_cast<Size>(memory_.extent(0)); }

  /// Writes the elements to a file in which tensor t begins at byte places[t], calls `after_tensor`
  /// after each tensor that the rank has a part of, and returns when they are on the disk: this
  /// rank's part of each tensor's checksum. Uses neither MPI nor HDF5 nor a device, so that any
  /// thread may call it. Throws Error (usage), or (wrong_result) for a value that is not finite.
  std::vector<Size> write(const std::string& path, const std::vector<Size>& places,
                          const std::function<void()>& after_tensor) const;

 private:
  using Bytes = Kokkos::View<std::byte*, Kokkos::HostSpace>;

  std::vector<CheckpointTensor> tensors_;
  std::vector<CheckpointPart> parts_;  ///< one behind the other in memory
  Bytes memory_;
};

}  // namespace tessera
