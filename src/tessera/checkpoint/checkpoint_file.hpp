// SPDX-License-Identifier: Apache-2.0
// One checkpoint: an HDF5 file of plain arrays in their whole shape, whatever mesh wrote it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tessera/checkpoint/training_state.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/plan/checkpoint_plan.hpp>

namespace tessera {

/// Of what this program writes, and the newest that it reads.
inline constexpr Size checkpoint_version = 2;

/// The most bytes that a rank moves at once, and that device memory is copied to the host in.
inline constexpr Size checkpoint_piece = 32 << 20;

/// A new file with the state and with room for the tensors, written by this process alone.
void create_checkpoint(const std::string& path, const std::vector<CheckpointTensor>& tensors,
                       const TrainingState& state);

/// Called after each tensor, on every rank.
using AfterTensor = std::function<void()>;

/// Writes the tensors of an engine to the file that one rank has created: each rank what it owns,
/// in collective calls of at most `piece` bytes. Afterwards that file holds the checksums, too.
/// Returns the bytes of this rank. Collective; an Error of one rank is thrown by all:
/// (wrong_result) for a value that is not finite.
template <class T>
Size write_tensors(const std::string& path, const Communicator& ranks, const Engine<T>& engine,
                   const AfterTensor& after_tensor = {}, Size piece = checkpoint_piece);

/// Adds up the parts that ranks have of the checksum of each tensor, and writes the sums to the
/// file. Collective; an Error of one rank is thrown by all.
void write_checksums(const std::string& path, const Communicator& ranks,
                     const std::vector<CheckpointTensor>& tensors, const std::vector<Size>& parts);

/// Reads what this rank keeps, and nothing else, into an engine on any mesh, and checks the sums
/// over all ranks. Returns the bytes of this rank. Collective; an Error of one rank is thrown by
/// all of them: what is missing, has another shape or type, or is damaged.
template <class T>
Size read_tensors(const std::string& path, const Communicator& ranks, const Engine<T>& engine,
                  Size piece = checkpoint_piece);

/// The state, checked. Throws Error for what is no checkpoint, a version that is too new, and
/// damage.
TrainingState read_state(const std::string& path);

/// Reads all that the file must hold; throws the Error of the first array that is missing, has
/// another shape or type than it was written with, or differs from its checksum. Returns the bytes
/// of the arrays.
Size verify_checkpoint(const std::string& path);

}  // namespace tessera
