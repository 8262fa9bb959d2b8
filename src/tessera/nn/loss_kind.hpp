// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <tessera/base/names.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// Losses over prediction p and target t, both (rows, cols). Each is a local sum and a count, so
/// that the mean over any split of the rows is (sum of sums) / (sum of counts).
enum class LossKind : std::uint8_t {
  mse,          ///< sum (p - t)^2, count rows * cols
  mae,          ///< sum |p - t|, count rows * cols
  relative_l2,  ///< sum over rows of |p - t|_2 / |t|_2, count rows
};

template <>
inline constexpr std::array<std::string_view, 3> names_of<LossKind>{"mse", "mae", "relative_l2"};

/// What the sum over `rows` rows of width `cols` is divided by.
constexpr Size loss_count(LossKind kind, Size rows, Size cols) {
  return kind == LossKind::relative_l2 ? rows : rows * cols;
}

}  // namespace tessera
