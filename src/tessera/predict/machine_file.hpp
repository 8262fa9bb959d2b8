// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/predict/machine.hpp>

namespace tessera {

/// Reads a machine file: tables [machine] and [machine.flops_per_second], and a [[network]] for
/// each level. Throws Error (usage) for a file that cannot be read or lacks a key, ConfigError for
/// unknown keys and invalid values.
Machine load_machine(const std::string& path);

/// Returns the text of a machine file. load_machine() reads the same machine back.
std::string machine_as_toml(const Machine& machine);

}  // namespace tessera
