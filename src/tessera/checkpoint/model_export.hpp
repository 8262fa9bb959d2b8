// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/base/names.hpp>

namespace tessera {

enum class ExportFormat : std::uint8_t { npz, safetensors };
template <>
inline constexpr std::array<std::string_view, 2> names_of<ExportFormat>{"npz", "safetensors"};

/// tessera: "layer1/kernel" (in, out). pytorch: as in the state_dict() of modules with the names of
/// the layers, "layer1.weight" (out, in), so that nn.Linear, nn.LayerNorm and nn.Embedding load
/// them.
enum class ExportNames : std::uint8_t { tessera, pytorch };
template <>
inline constexpr std::array<std::string_view, 2> names_of<ExportNames>{"tessera", "pytorch"};

/// Writes the parameters of a checkpoint, checked against their checksums, to one file. Throws
/// Error. Returns how many arrays they are.
std::size_t export_parameters(const std::string& checkpoint, const std::string& to,
                              ExportFormat format, ExportNames names);

}  // namespace tessera
