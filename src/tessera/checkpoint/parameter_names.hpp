// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/base/names.hpp>
#include <tessera/base/placement.hpp>

namespace tessera {

/// tessera: "layer1/kernel" (in, out). pytorch: as in the state_dict() of modules with the names of
/// the layers, "layer1.weight" (out, in), so that nn.Linear, nn.LayerNorm and nn.Embedding load
/// them.
enum class ExportNames : std::uint8_t { tessera, pytorch };
template <>
inline constexpr std::array<std::string_view, 2> names_of<ExportNames>{"tessera", "pytorch"};

/// A parameter in a file for other programs.
struct ExportedParameter {
  std::string name;
  Shape shape;
  bool transposed = false;  ///< its two dimensions have changed places
};
/// `path` and `shape` are those of the model: "layer1/kernel", (in, out).
ExportedParameter exported_parameter(const std::string& path, const Shape& shape,
                                     ExportNames names);

}  // namespace tessera
