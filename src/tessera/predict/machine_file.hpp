// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <tessera/predict/machine.hpp>

namespace tessera {

/// Reads a machine file: the tables [machine] and [machine.flops_per_second], others of [machine]
/// and [software] if they are there, and one [[network]] per level, the innermost first. It must
/// tell the device, because plans for a CPU and for a GPU differ. Throws Error (usage) if the file
/// cannot be read or lacks a key, and ConfigError for unknown keys and invalid values.
Machine load_machine(const std::string& path);

/// Returns the text of a machine file from which load_machine() reads the same machine.
std::string machine_as_toml(const Machine& machine);

/// Returns the facts of [software] by their keys.
nlohmann::json to_json(const Software& software);

}  // namespace tessera
