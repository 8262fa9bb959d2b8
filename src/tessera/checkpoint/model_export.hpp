// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/base/names.hpp>

namespace tessera {

/// tessera: "layer1/kernel" (in, out). pytorch: as in the state_dict() of modules with the names of
/// the layers, "layer1.weight" (out, in), so that nn.Linear, nn.LayerNorm and nn.Embedding load
/// them.
enum class ExportNames : std::uint8_t { tessera, pytorch };
template <>
inline constexpr std::array<std::string_view, 2> names_of<ExportNames>{"tessera", "pytorch"};

/// Writes the parameters of a checkpoint to one file in the safetensors format, and returns their
/// number. Throws Error if an array does not match its checksum; `to` is then left as it was.
std::size_t export_parameters(const std::string& checkpoint, const std::string& to,
                              ExportNames names);

}  // namespace tessera
