// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/engine/dataset.hpp>
#include <tessera/engine/engine.hpp>

namespace tessera {

/// Reads this rank's memory and describes every tensor that exists between steps: its path, the
/// block of the global tensor, the elements of the block that are kept, and their checksum.
template <class T>
nlohmann::json describe_live_tensors(const Plan& plan, Size rank, const Engine<T>& engine,
                                     const Dataset<StateOf<T>>& data);

/// Lists each tensor's global blocks with the ranks that hold them. `ranks` has the result of
/// describe_live_tensors() of every rank. Ranks whose values of a block differ get separate lines.
std::string live_tensors_text(const Plan& plan, const std::vector<nlohmann::json>& ranks);

}  // namespace tessera
