// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>

#include <tessera/optim/schedule.hpp>

namespace tessera {
namespace {

/// Falls linearly from 1 at s <= 0 to `end` at s >= n.
double fall(double s, double n, double end) {
  return end + (1 - end) * (1 - std::clamp(s, 0.0, n) / n);
}

double factor_at(const ScheduleConfig& c, Size step) {
  if (step < c.warmup_steps) {
    const double progress = static_cast<double>(step) / static_cast<double>(c.warmup_steps);
    return c.start_factor + (1 - c.start_factor) * progress;
  }
  const Size since = step - c.warmup_steps;
  const double s = static_cast<double>(since);
  const double n = static_cast<double>(has_end(c.kind) ? c.steps - c.warmup_steps : c.steps);
  const double decay = static_cast<double>(c.decay_steps), end = c.end_factor;
  switch (c.kind) {
    case ScheduleKind::constant:
      return 1;
    case ScheduleKind::exponential:
      return std::pow(c.rate, s / n);
    case ScheduleKind::cosine:
    case ScheduleKind::warmup_cosine:
      return (1 - end) * 0.5 * (1 + std::cos(std::numbers::pi * (std::min(s, n) / n))) + end;
    case ScheduleKind::linear:
      return fall(s, n, end);
    case ScheduleKind::step: {
      const Size decays = since / c.steps;
      return std::pow(c.rate, decays);
    }
    case ScheduleKind::wsd:
      return fall(s - (n - decay), decay, end);
  }
  return 1;
}

}  // namespace

double learning_rate_at(const ScheduleConfig& config, double base, Size step) {
  return base * factor_at(config, step);
}

}  // namespace tessera
