// SPDX-License-Identifier: Apache-2.0
// The fields of the structs of models, each defined with its model, and what they share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/fields.hpp>
#include <tessera/nn/models/models.hpp>

namespace tessera {

const Fields<MlpConfig>& mlp_fields();
const Fields<ResidualMlpConfig>& residual_mlp_fields();
const Fields<TransformerConfig>& transformer_fields();
const Fields<VaeConfig>& vae_fields();
const Fields<PinnConfig>& pinn_fields();
const Fields<FnoConfig>& fno_fields();

/// Limits of sizes, so that products of two sizes fit 64 bits.
inline constexpr Size most_columns = Size{1} << 31;
inline constexpr Size most_positions = Size{1} << 24;  ///< of a sequence or a grid
inline constexpr Size most_layers = 1024;              ///< in a chain, or blocks

inline constexpr Bounds a_width = up_to(most_columns), a_depth = up_to(most_layers);

/// Returns what is allowed instead of these widths of layers; "" if they are.
std::string allowed_widths(const std::vector<Size>& widths);

/// Throws ConfigError if layers.output_activation is not the identity, for models without one.
void check_no_output_activation(std::string_view kind, const MlpConfig& layers);

}  // namespace tessera
