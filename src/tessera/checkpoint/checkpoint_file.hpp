// SPDX-License-Identifier: Apache-2.0
// One checkpoint: an HDF5 file of whole arrays, the same whatever mesh wrote it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tessera/checkpoint/training_state.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/plan/checkpoint_plan.hpp>

namespace tessera {

/// The format that this program writes, and the newest one that it reads.
inline constexpr Size checkpoint_version = 3;

/// The most bytes that a rank reads, writes or copies from the device at once.
inline constexpr Size checkpoint_piece = 32 << 20;

/// Creates a file with the state and with space for the tensors. One process calls it.
void create_checkpoint(const std::string& path, const std::vector<CheckpointTensor>& tensors,
                       const TrainingState& state);

/// Called after each tensor, on every rank.
using AfterTensor = std::function<void()>;

/// Writes the tensors of an engine and their checksums to a file that one rank has created. Each
/// rank writes what it owns, at most `piece` bytes per call. Returns the bytes of this rank. Throws
/// the same Error on every rank, (wrong_result) for a value that is not finite. Collective.
template <class T>
Size write_tensors(const std::string& path, const Communicator& ranks, const Engine<T>& engine,
                   const AfterTensor& after_tensor = {}, Size piece = checkpoint_piece);

/// Adds up the ranks' parts of each tensor's checksum and writes the sums to the file. Throws the
/// same Error on every rank. Collective.
void write_checksums(const std::string& path, const Communicator& ranks,
                     const std::vector<CheckpointTensor>& tensors, const std::vector<Size>& parts);

/// Reads what this rank keeps into an engine on any mesh and checks the checksums. Returns the
/// bytes of this rank. Throws the same Error (usage) on every rank for an array that is missing,
/// has another shape or type, or is damaged. Collective.
template <class T>
Size read_tensors(const std::string& path, const Communicator& ranks, const Engine<T>& engine,
                  Size piece = checkpoint_piece);

/// Reads the parameters alone, which are of element type `type` in the file, and converts them.
/// Else like read_tensors().
template <class T>
Size read_parameters(const std::string& path, const Communicator& ranks, const Engine<T>& engine,
                     DType type);

/// Reads and checks the state. Throws Error (usage) for a file that is not a checkpoint, has a
/// newer version or is damaged.
TrainingState read_state(const std::string& path);

/// Reads and checks the whole file. Throws Error (usage) for the first array that is missing, has
/// another shape or type than when it was written, or differs from its checksum. Returns the bytes
/// of the arrays.
Size verify_checkpoint(const std::string& path);

}  // namespace tessera
