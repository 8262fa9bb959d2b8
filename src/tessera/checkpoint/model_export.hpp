// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tessera/checkpoint/parameter_names.hpp>

namespace tessera {

/// Writes the parameters of a checkpoint to one file in the safetensors format, and returns their
/// number. Throws Error if an array does not match its checksum; `to` is then left as it was.
std::size_t export_parameters(const std::string& checkpoint, const std::string& to,
                              ExportNames names);

}  // namespace tessera
