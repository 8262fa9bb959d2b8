// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include <tessera/base/names.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// Update rules, see README.md. g gradient, p parameter, lr learning rate, t step from 1.
enum class OptimizerKind : std::uint8_t {
  sgd,      ///< m = g + momentum m;  p -= lr m, or with nesterov p -= lr (g + momentum m)
  adam,     ///< m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;
            ///< p -= lr (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + epsilon)
  adamw,    ///< adam, and p -= lr weight_decay p
  rmsprop,  ///< v = decay v + (1-decay) g^2;  p -= lr g / sqrt(v + epsilon)
  muon,     ///< steps of orthogonal matrices (Jordan 2024), README.md; adamw for other parameters
};

template <>
inline constexpr std::array<std::string_view, 5> names_of<OptimizerKind>{"sgd", "adam", "adamw",
                                                                         "rmsprop", "muon"};

/// The parameters that weight decay acts on.
enum class WeightDecayOn : std::uint8_t {
  all,
  kernels,  ///< factors of matrix products; not biases, norms and embeddings
};

template <>
inline constexpr std::array<std::string_view, 2> names_of<WeightDecayOn>{"all", "kernels"};

/// The length of a step of muon along an orthogonal (rows, columns) matrix of columns outputs.
enum class MuonScale : std::uint8_t {
  match_rms,  ///< 0.2 sqrt(max(rows, columns)): the usual RMS of AdamW (Liu et al. 2025)
  original,   ///< sqrt(max(1, columns / rows)) (Jordan 2024)
};
template <>
inline constexpr std::array<std::string_view, 2> names_of<MuonScale>{"match_rms", "original"};

/// The type in which moments are kept.
enum class MomentsType : std::uint8_t {
  state,  ///< that of the parameters
  bf16,   ///< each update is rounded up or down at random; the arithmetic is that of the parameters
};
template <>
inline constexpr std::array<std::string_view, 2> names_of<MomentsType>{"state", "bf16"};

/// validate() rejects values that the chosen kind does not use.
struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::adam;
  double momentum = 0;                                 ///< sgd, in [0, 1)
  bool nesterov = false;                               ///< sgd with momentum
  double beta1 = 0.9;                                  ///< adam, adamw, muon, in [0, 1)
  double beta2 = 0.999;                                ///< adam, adamw, muon, in [0, 1)
  double epsilon = 1e-8;                               ///< all but sgd, positive
  double weight_decay = 0;                             ///< adamw, muon, not negative
  WeightDecayOn weight_decay_on = WeightDecayOn::all;  ///< with weight_decay > 0
  double decay = 0.9;                                  ///< rmsprop, in [0, 1)
  double muon_momentum = 0.95;                         ///< muon, in [0, 1)
  MuonScale muon_scale = MuonScale::match_rms;         ///< muon
  MomentsType moments_type = MomentsType::state;       ///< of a kind with moments

  friend bool operator==(const OptimizerConfig&, const OptimizerConfig&) = default;
};

/// Throws ConfigError for the first value that is out of range or that the kind does not use.
void validate(const OptimizerConfig& config);

/// Returns the number of moments per parameter: 0, 1 or 2. A matrix of muon has only the first.
constexpr Size moments_per_parameter(const OptimizerConfig& config) {
  switch (config.kind) {
    case OptimizerKind::sgd:
      return config.momentum != 0 ? 1 : 0;
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
    case OptimizerKind::muon:
      return 2;
    case OptimizerKind::rmsprop:
      return 1;
  }
  return 0;
}

/// Clipping of the averaged gradient before the optimizer: first by value, then by norm.
struct ClipConfig {
  std::optional<double> global_norm{};  ///< c: g c / norm if norm >= c; positive
  std::optional<double> value{};        ///< each element into [-value, value]; positive

  friend bool operator==(const ClipConfig&, const ClipConfig&) = default;
};

/// Throws ConfigError for a limit that is not positive and finite.
void validate(const ClipConfig& config);

/// Returns the factor of the gradient, given its squared norm over all elements of the model.
inline double clip_scale(const ClipConfig& config, double squared_norm) {
  if (!config.global_norm) return 1;
  const double norm = std::sqrt(squared_norm);
  return norm >= *config.global_norm ? *config.global_norm / norm : 1;
}

}  // namespace tessera
