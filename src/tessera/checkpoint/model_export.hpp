// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/names.hpp>
#include <tessera/base/placement.hpp>
#include <tessera/base/types.hpp>
#include <tessera/checkpoint/exported_parameter.hpp>

namespace tessera {

/// tessera: "layer1/kernel" (in, out). pytorch: as in the state_dict() of modules with the names of
/// the layers, "layer1.weight" (out, in), so that nn.Linear, nn.LayerNorm and nn.Embedding load
/// them. huggingface: as in a model of the package transformers (huggingface.hpp).
enum class ExportNames : std::uint8_t { tessera, pytorch, huggingface };
template <>
inline constexpr std::array<std::string_view, 3> names_of<ExportNames>{"tessera", "pytorch",
                                                                       "huggingface"};

/// `path` and `shape` are those of the model: "layer1/kernel", (in, out). `names`: one of the first
/// two.
ExportedParameter exported_parameter(const std::string& path, const Shape& shape,
                                     ExportNames names);

/// Names of the element types of exported parameters.
inline constexpr std::array<std::string_view, 4> export_types{
    name_of(DType::float64), name_of(DType::float32), name_of(DType::bfloat16),
    name_of(DType::float16)};

/// Writes tensors of a checkpoint to one file in the safetensors format, and returns the number of
/// arrays: tensors whose names begin with one of `selected`, by default the parameters. `type` is
/// one of export_types; by default tensors keep their type. They are rounded to nearest, ties to
/// even. With ExportNames::huggingface, writes config.json beside the file, in a folder that need
/// not exist. Throws Error if an array does not match its checksum or has a value beyond the range
/// of the type, or for a model that has no such names; `to` is then left as it was.
std::size_t export_parameters(const std::string& checkpoint, const std::string& to,
                              ExportNames names, std::optional<DType> type = {},
                              const std::vector<std::string>& selected = {});

}  // namespace tessera
