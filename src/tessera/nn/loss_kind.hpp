// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <tessera/base/names.hpp>
#include <tessera/base/types.hpp>
#include <tessera/nn/models/model_spec.hpp>

namespace tessera {

/// Losses over prediction p and target t, both (rows, cols). Each is a local sum and a count; the
/// mean over any split of the rows is (sum of the sums) / (sum of the counts). A row is a sample
/// with all its positions; for cross_entropy it is one position.
enum class LossKind : std::uint8_t {
  mse,            ///< sum (p - t)^2, count rows * cols
  mae,            ///< sum |p - t|, count rows * cols
  relative_l2,    ///< sum over rows of |p - t|_2 / |t|_2, count rows
  bce,            ///< sum of max(p, 0) - p t + log(1 + exp(-|p|)) for logits p, count rows
  cross_entropy,  ///< sum over rows of log sum exp(p) - p[t] with a class number t, count rows
  /// sum over rows of (sum of u_ii + t_0)^2 + weight (p_last - t_last)^2, count rows. p has the
  /// columns u, u_i, u_ii at a point of the interior and u at a point of the boundary.
  poisson,
};

template <>
inline constexpr std::array<std::string_view, 6> names_of<LossKind>{
    "mse", "mae", "relative_l2", "bce", "cross_entropy", "poisson"};

/// Returns the divisor of the sum over `rows` rows of `cols` columns.
constexpr Size loss_count(LossKind kind, Size rows, Size cols) {
  return kind == LossKind::mse || kind == LossKind::mae ? rows * cols : rows;
}

constexpr Targets targets_of(LossKind kind) {
  if (kind == LossKind::cross_entropy) return Targets::classes;
  return kind == LossKind::poisson ? Targets::residuals : Targets::values;
}

/// Shape in which a loss reads a prediction: a row per sample, or per position.
struct LossShape {
  Size rows = 0, cols = 0;
};
constexpr LossShape loss_shape(LossKind kind, Size samples, Size positions, Size cols) {
  if (kind == LossKind::cross_entropy) return {samples * positions, cols};
  return {samples, positions * cols};
}

}  // namespace tessera
