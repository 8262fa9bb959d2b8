// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <tessera/base/names.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// Learning rate over the 0-based step s, as optax defines it; b is the base rate, n = steps.
enum class ScheduleKind : std::uint8_t {
  constant,       ///< b
  exponential,    ///< b rate^(s/n)
  cosine,         ///< b ((1 - end) (1 + cos(pi min(s, n)/n)) / 2 + end)
  linear,         ///< b (end + (1 - end) (1 - min(s, n)/n))
  step,           ///< b rate^floor(s/n)
  warmup_cosine,  ///< s < w: b (start + (1 - start) s/w); then cosine of s - w over n - w steps
};

template <>
inline constexpr std::array<std::string_view, 6> names_of<ScheduleKind>{
    "constant", "exponential", "cosine", "linear", "step", "warmup_cosine"};

/// A value that the chosen kind does not use must keep its default; validate() sees to it.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::constant;
  Size steps = 0;           ///< n, positive, all but constant; warmup_cosine: with the warm-up
  double rate = 1;          ///< exponential and step, positive
  double end_factor = 0;    ///< `end`: final rate / base; cosine, linear, warmup_cosine
  Size warmup_steps = 0;    ///< w, positive and below n; warmup_cosine
  double start_factor = 0;  ///< `start`: first rate / base; warmup_cosine

  friend bool operator==(const ScheduleConfig&, const ScheduleConfig&) = default;
};

/// Throws ConfigError naming "schedule.<field>" for a value out of range or not used by the kind.
void validate(const ScheduleConfig& config);

/// The rate of step `step` (0 for the first). It multiplies the finished update of an optimizer; a
/// factor on the gradient would vanish in Adam's normalisation.
double learning_rate_at(const ScheduleConfig& config, double base, Size step);

}  // namespace tessera
