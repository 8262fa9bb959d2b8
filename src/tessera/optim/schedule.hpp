// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <tessera/base/names.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// Learning rate at step s from 0, see README.md. b is the base rate, n = steps, w = warmup_steps.
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

/// validate() rejects values that the chosen kind does not use.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::constant;
  Size steps = 0;           ///< n, positive, all but constant; warmup_cosine: with the warm-up
  double rate = 1;          ///< exponential and step, positive
  double end_factor = 0;    ///< `end`: final rate / base; cosine, linear, warmup_cosine
  Size warmup_steps = 0;    ///< w, positive and below n; warmup_cosine
  double start_factor = 0;  ///< `start`: first rate / base; warmup_cosine

  friend bool operator==(const ScheduleConfig&, const ScheduleConfig&) = default;
};

/// Throws ConfigError for the first value that is out of range or that the kind does not use.
void validate(const ScheduleConfig& config);

/// Returns the rate of step `step`, from 0. It multiplies the update, not the gradient, whose scale
/// Adam removes.
double learning_rate_at(const ScheduleConfig& config, double base, Size step);

}  // namespace tessera
