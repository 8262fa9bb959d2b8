// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <optional>

namespace tessera {

/// What is done to the averaged gradient before the optimizer: first by value, then by norm.
struct ClipConfig {
  std::optional<double> global_norm{};  ///< c: g c / norm if norm >= c; positive
  std::optional<double> value{};        ///< each element into [-value, value]; positive

  friend bool operator==(const ClipConfig&, const ClipConfig&) = default;
};

/// Throws ConfigError naming "clip.<field>" for a limit that is not positive and finite.
void validate(const ClipConfig& config);

/// The factor for the gradient, from its squared norm over all unique elements of the model.
inline double clip_scale(const ClipConfig& config, double squared_norm) {
  if (!config.global_norm) return 1;
  const double norm = std::sqrt(squared_norm);
  return norm >= *config.global_norm ? *config.global_norm / norm : 1;
}

}  // namespace tessera
