// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/base/types.hpp>
#include <tessera/checkpoint/parameter_names.hpp>

namespace tessera {

/// Names of the element types of exported parameters.
inline constexpr std::array<std::string_view, 4> export_types{
    name_of(DType::float64), name_of(DType::float32), name_of(DType::bfloat16),
    name_of(DType::float16)};

/// Writes the parameters of a checkpoint to one file in the safetensors format, and returns their
/// number. `type` is one of export_types; by default parameters keep their type. They are rounded
/// to nearest, ties to even. Throws Error if an array does not match its checksum or has a value
/// beyond the range of the type; `to` is then left as it was.
std::size_t export_parameters(const std::string& checkpoint, const std::string& to,
                              ExportNames names, std::optional<DType> type = {});

}  // namespace tessera
