// SPDX-License-Identifier: Apache-2.0
#include "measure/fits.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tessera::bench {
namespace {

double largest(const std::vector<double>& values) {
  double found = 0;
  for (const double value : values) found = std::max(found, std::abs(value));
  return found;
}

std::optional<double> r_squared(const std::vector<double>& y,
                                const std::vector<double>& residuals) {
  const double mean = std::accumulate(y.begin(), y.end(), 0.0) / static_cast<double>(y.size());
  double left = 0;
  double total = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    left += residuals[i] * residuals[i];
    total += (y[i] - mean) * (y[i] - mean);
  }
  if (total == 0) return std::nullopt;
  return 1 - left / total;
}

}  // namespace

std::optional<LinearFit> fit_linear(const std::vector<double>& u, const std::vector<double>& v,
                                    const std::vector<double>& y,
                                    const std::vector<double>& weights) {
  // Columns of one magnitude: rounds are a few, bytes may be billions.
  const double scale_u = largest(u);
  const double scale_v = largest(v);
  if (y.size() < 2 || scale_u == 0 || scale_v == 0) return std::nullopt;
  double uu = 0, uv = 0, vv = 0, uy = 0, vy = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double ui = u[i] / scale_u, vi = v[i] / scale_v, w = weights[i];
    uu += w * ui * ui;
    uv += w * ui * vi;
    vv += w * vi * vi;
    uy += w * ui * y[i];
    vy += w * vi * y[i];
  }
  const double determinant = uu * vv - uv * uv;
  if (determinant <= 1e-9 * uu * vv) return std::nullopt;
  LinearFit fit;
  fit.a = (uy * vv - vy * uv) / determinant / scale_u;
  fit.b = (vy * uu - uy * uv) / determinant / scale_v;
  for (std::size_t i = 0; i < y.size(); ++i) {
    fit.fitted.push_back(fit.a * u[i] + fit.b * v[i]);
    fit.residuals.push_back(y[i] - fit.fitted[i]);
  }
  fit.r_squared = r_squared(y, fit.residuals);
  return fit;
}

std::optional<AmdahlFit> fit_amdahl(const std::vector<double>& ranks,
                                    const std::vector<double>& seconds) {
  if (ranks.size() < 3) return std::nullopt;
  std::vector<double> inverse;
  for (const double p : ranks) inverse.push_back(1 / p);
  const std::vector<double> ones(ranks.size(), 1.0);
  const std::optional<LinearFit> line = fit_linear(ones, inverse, seconds, ones);
  if (!line || line->a + line->b <= 0) return std::nullopt;
  return AmdahlFit{line->a / (line->a + line->b), line->a + line->b, *line};
}

std::optional<AlphaBetaFit> fit_alpha_beta(const std::vector<double>& rounds,
                                           const std::vector<double>& bytes,
                                           const std::vector<double>& seconds,
                                           std::size_t at_least) {
  if (seconds.size() < at_least || largest(seconds) == 0) return std::nullopt;
  std::vector<double> weights;
  for (const double s : seconds) weights.push_back(s > 0 ? 1 / (s * s) : 0);
  const std::optional<LinearFit> line = fit_linear(rounds, bytes, seconds, weights);
  if (!line) return std::nullopt;
  return AlphaBetaFit{line->a, line->b, *line};
}

}  // namespace tessera::bench
