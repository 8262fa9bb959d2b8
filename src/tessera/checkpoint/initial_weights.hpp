// SPDX-License-Identifier: Apache-2.0
// The parameters of another training, from which a training starts: those of a checkpoint, or a
// safetensors file with the names that model_export writes.
#pragma once

#include <string>

#include <tessera/comm/communicator.hpp>
#include <tessera/engine/engine.hpp>

namespace tessera {

/// Checks that the file has exactly the parameters of the model, with their shapes. Throws the same
/// Error (usage) on every rank; it lists the arrays that do not fit. Collective.
void check_initial_weights(const std::string& path, const Communicator& ranks,
                           const ModelSpec& model);

/// Replaces the engine's parameters by those of the file, converted to the engine's type. Each rank
/// reads what it keeps, and returns the bytes. Throws the same Error (usage) on every rank, also
/// for a value that is not finite or is damaged. Collective.
template <class T>
Size read_initial_weights(const std::string& path, const Communicator& ranks, Engine<T>& engine);

}  // namespace tessera
