// SPDX-License-Identifier: Apache-2.0
// Checks of the sizes of models.
#pragma once

#include <string_view>
#include <vector>

#include <tessera/nn/models/models.hpp>

namespace tessera {

/// Limits of sizes, so that products of two sizes fit 64 bits.
inline constexpr Size most_columns = Size{1} << 31;
inline constexpr Size most_positions = Size{1} << 24;  ///< of a sequence or a grid
inline constexpr Size most_layers = 1024;              ///< in a chain, or blocks

/// Throws ConfigError unless the value of a key is from 1 to `most`.
void check_size(std::string_view key, Size value, Size most = most_columns);
/// Throws ConfigError unless all values are from 1 to most_columns and their number is that of the
/// widths of at most most_layers layers.
void check_sizes(std::string_view key, const std::vector<Size>& values);

/// Throws ConfigError if layers.output_activation is not the identity, for models without one.
void check_no_output_activation(std::string_view kind, const MlpConfig& layers);

}  // namespace tessera
