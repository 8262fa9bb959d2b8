// SPDX-License-Identifier: Apache-2.0
// The tensors of a checkpoint, written and read from all ranks: each element is written by one
// rank, at a place in the file that follows from the plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tessera/checkpoint/checkpoint_file.hpp>
#include <tessera/checkpoint/exported_parameter.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/plan/checkpoint_plan.hpp>

namespace tessera {

/// The file that ranks write tensors to.
struct TensorFile {
  std::string path;
  std::vector<CheckpointTensor> tensors;
  std::vector<Size> places;  ///< places_of() them
  /// Called after each tensor that this rank has a part of.
  std::function<void()> after_tensor{};
};

/// Writes what this rank owns and syncs the file. Copies at most `piece` bytes at once from the
/// device. Returns this rank's part of each tensor's checksum. Throws Error (usage), (wrong_result)
/// for a value that is not finite. Not collective.
template <class T>
std::vector<std::uint64_t> write_tensors(const TensorFile& to, const Engine<T>& engine, Size rank,
                                         Size piece = checkpoint_piece);

/// A copy in host memory of what a rank writes. It takes checkpoint_bytes() bytes, which later
/// copies use again.
class Snapshot {
 public:
  template <class T>
  void take(const Engine<T>& engine, Size rank);

  /// Writes the copy like write_tensors(). Any thread may call it: it uses neither MPI nor a
  /// device.
  std::vector<std::uint64_t> write(const TensorFile& to) const;

 private:
  using Bytes = Kokkos::View<std::byte*, Kokkos::HostSpace>;

  std::vector<CheckpointPart> parts_;  ///< contiguous in memory
  Bytes memory_;
};

/// An array of one of several files.
struct SourceArray {
  const SafetensorsFile* file;
  SafetensorsArray array;
};

/// The arrays from which a tensor is read, all of one type.
struct TensorSource {
  std::vector<SourceArray> arrays;
  ArrayLayout layout{};
  std::optional<std::uint64_t> checksum{};
};

/// Reads what this rank keeps of the first from.size() checkpoint_tensors() into an engine on any
/// mesh, converts it from the type in the file, and checks the checksums. Returns the bytes of this
/// rank. Throws the same Error (usage) on every rank for a tensor that is damaged, or has a value
/// that is not finite in the engine's type. Collective.
template <class T>
Size read_tensors(const std::vector<TensorSource>& from, const Communicator& ranks,
                  const Engine<T>& engine, Size piece = checkpoint_piece);

/// Reads all tensors of a checkpoint. Throws the same Error (usage) on every rank also for tensors
/// that are missing or have another shape or type. Else like the function above.
template <class T>
Size read_tensors(const std::string& path, const Communicator& ranks, const Engine<T>& engine,
                  Size piece = checkpoint_piece);

/// Throws the same Error (usage) on every rank if a rank reads another file of this name than rank
/// 0, as on nodes with disks of their own. Compares the first 4 MiB. Collective.
void check_same_contents(const std::string& path, const Communicator& ranks);

}  // namespace tessera
