// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <tessera/base/names.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// Learning rate after the warm-up, see README.md. b is the base rate, t = s - w the number of
/// steps since the warm-up, n = steps. The kinds with an end reach it after n - w of them.
enum class ScheduleKind : std::uint8_t {
  constant,       ///< b
  exponential,    ///< b rate^(t/n)
  cosine,         ///< b ((1 - end) (1 + cos(pi min(t, n-w)/(n-w))) / 2 + end)
  linear,         ///< b (end + (1 - end) (1 - min(t, n-w)/(n-w)))
  step,           ///< b rate^floor(t/n)
  warmup_cosine,  ///< cosine, with a warm-up
  wsd,            ///< b, and in the last decay_steps of n linearly to b end
};

/// Returns true if the kind has an end, so that `steps` is its whole length and includes the
/// warm-up.
constexpr bool has_end(ScheduleKind kind) {
  using enum ScheduleKind;
  return kind == cosine || kind == linear || kind == warmup_cosine || kind == wsd;
}

template <>
inline constexpr std::array<std::string_view, 7> names_of<ScheduleKind>{
    "constant", "exponential", "cosine", "linear", "step", "warmup_cosine", "wsd"};

/// validate() rejects values that the chosen kind does not use.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::constant;
  Size steps = 0;         ///< n, positive, all but constant
  double rate = 1;        ///< exponential and step, positive
  double end_factor = 0;  ///< `end`: final rate / base; kinds with an end
  Size decay_steps = 0;   ///< wsd, positive; at most n with the warm-up
  /// w: before step w the rate is b (start + (1 - start) s/w). 0: no warm-up; below n if the kind
  /// has an end; positive for warmup_cosine.
  Size warmup_steps = 0;
  double start_factor = 0;  ///< `start`: first rate / base, with a warm-up

  friend bool operator==(const ScheduleConfig&, const ScheduleConfig&) = default;
};

/// Throws ConfigError for the first value that is out of range or that the kind does not use.
void validate(const ScheduleConfig& config);

/// Returns the rate of step `step`, from 0. It multiplies the update, not the gradient, whose scale
/// Adam removes.
double learning_rate_at(const ScheduleConfig& config, double base, Size step);

}  // namespace tessera
