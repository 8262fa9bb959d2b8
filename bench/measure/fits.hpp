// SPDX-License-Identifier: Apache-2.0
// Models of two parameters, fitted by least squares.
#pragma once

#include <optional>
#include <vector>

#include <tessera/base/types.hpp>

namespace tessera::bench {

/// y = a u + b v.
struct LinearFit {
  double a = 0;
  double b = 0;
  std::vector<double> fitted;     ///< by point
  std::vector<double> residuals;  ///< y - fitted
  /// 1 - sum of squared residuals / that of the distances from the mean; none if all y are equal.
  std::optional<double> r_squared;
};

/// Minimises the sum of weight (y - a u - b v)^2. None for fewer than two points, and where they do
/// not determine both parameters.
std::optional<LinearFit> fit_linear(const std::vector<double>& u, const std::vector<double>& v,
                                    const std::vector<double>& y,
                                    const std::vector<double>& weights);

/// T(p) = T(1) (s + (1 - s) / p).
struct AmdahlFit {
  double serial_fraction = 0;  ///< s; negative where speed-up is better than linear
  double one_rank_seconds = 0;
  LinearFit line;
};
/// None for fewer than three points or two different numbers of ranks.
std::optional<AmdahlFit> fit_amdahl(const std::vector<double>& ranks,
                                    const std::vector<double>& seconds);

/// seconds = alpha rounds + beta bytes.
struct AlphaBetaFit {
  double alpha = 0;  ///< seconds of a round
  double beta = 0;   ///< seconds of a byte
  LinearFit line;
};
/// Relative errors count, as times lie decades apart. None for fewer than `at_least` points.
std::optional<AlphaBetaFit> fit_alpha_beta(const std::vector<double>& rounds,
                                           const std::vector<double>& bytes,
                                           const std::vector<double>& seconds,
                                           std::size_t at_least = 3);

}  // namespace tessera::bench
