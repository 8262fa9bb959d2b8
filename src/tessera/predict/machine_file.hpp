// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/predict/machine.hpp>

namespace tessera {

/// Reads a machine file: tables [machine] and [machine.flops_per_second], and a [[network]] for
/// each level. Throws Error (usage) for a file that cannot be read, ConfigError for unknown,
/// missing and impossible values.
Machine load_machine(const std::string& path);

/// The text of such a file; reading it back gives the same.
std::string machine_as_toml(const Machine& machine);

}  // namespace tessera
