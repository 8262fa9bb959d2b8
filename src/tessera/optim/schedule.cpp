// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>

#include <tessera/optim/schedule.hpp>

namespace tessera {
namespace {

/// Falls from 1 at s = 0 to `end` at s >= n along half a cosine.
double cosine(double s, double n, double end) {
  const double progress = std::min(s, n) / n;
  return (1 - end) * 0.5 * (1 + std::cos(std::numbers::pi * progress)) + end;
}

double factor_at(const ScheduleConfig& c, Size step) {
  const double s = static_cast<double>(step), n = static_cast<double>(c.steps);
  const double w = static_cast<double>(c.warmup_steps);
  switch (c.kind) {
    case ScheduleKind::constant:
      return 1;
    case ScheduleKind::exponential:
      return std::pow(c.rate, s / n);
    case ScheduleKind::cosine:
      return cosine(s, n, c.end_factor);
    case ScheduleKind::linear:
      return c.end_factor + (1 - c.end_factor) * (1 - std::min(s, n) / n);
    case ScheduleKind::step: {
      const Size decays = step / c.steps;
      return std::pow(c.rate, decays);
    }
    case ScheduleKind::warmup_cosine:
      return s < w ? c.start_factor + (1 - c.start_factor) * s / w
                   : cosine(s - w, n - w, c.end_factor);
  }
  return 1;
}

}  // namespace

double learning_rate_at(const ScheduleConfig& config, double base, Size step) {
  return base * factor_at(config, step);
}

}  // namespace tessera
