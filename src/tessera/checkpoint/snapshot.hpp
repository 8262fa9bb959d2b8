// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <tessera/engine/engine.hpp>
#include <tessera/plan/checkpoint_plan.hpp>

namespace tessera {

/// A copy in host memory of what a rank writes to a checkpoint. It takes checkpoint_bytes() bytes,
/// which later copies use again.
class Snapshot {
 public:
  template <class T>
  void take(const Engine<T>& engine, Size rank);

  const std::vector<CheckpointTensor>& tensors() const { return tensors_; }
  /// Returns the bytes of this rank's elements.
  Size bytes() const { return static_cast<Size>(memory_.extent(0)); }

  /// Writes the elements to a file in which tensor t begins at byte places[t], and syncs the file.
  /// Calls `after_tensor` after each tensor of this rank. Returns this rank's part of each tensor's
  /// checksum. Any thread may call it: it uses neither MPI nor HDF5 nor a device. Throws Error
  /// (usage), (wrong_result) for a value that is not finite.
  std::vector<Size> write(const std::string& path, const std::vector<Size>& places,
                          const std::function<void()>& after_tensor) const;

 private:
  using Bytes = Kokkos::View<std::byte*, Kokkos::HostSpace>;

  std::vector<CheckpointTensor> tensors_;
  std::vector<CheckpointPart> parts_;  ///< contiguous in memory
  Bytes memory_;
};

}  // namespace tessera
