// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/engine/dataset.hpp>
#include <tessera/engine/engine.hpp>

namespace tessera {

/// What this rank holds of every tensor between steps, read from the memory itself: for each its
/// path, block, the elements of the block that are kept, and their checksum.
template <class T>
nlohmann::json describe_live_tensors(const Plan& plan, Size rank, const Engine<T>& engine,
                                     const Dataset<StateOf<T>>& data);

/// The tensors of all ranks as a person reads them: each global block with the ranks that hold it.
/// Ranks with the same block whose checksums differ stand in lines of their own. `ranks`:
/// describe_live_tensors() of every rank.
std::string inspection_text(const Plan& plan, const std::vector<nlohmann::json>& ranks);

}  // namespace tessera
