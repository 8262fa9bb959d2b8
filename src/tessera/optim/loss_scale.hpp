// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>

namespace tessera {

/// The state of a LossScale in a checkpoint.
struct LossScaleState {
  double value = 1;
  Size good_steps = 0;  ///< since the value last changed
  Size skipped_steps = 0;
  friend bool operator==(const LossScaleState&, const LossScaleState&) = default;
};

/// The factor of the loss that keeps gradients within the range of a 16-bit type (Micikevicius et
/// al. 2018, section 3.2). An overflow halves it; `patience` steps without one double it. Ranks
/// agree on overflows, so it is the same on all.
class LossScale {
 public:
  static constexpr double first = 32768, smallest = 1, largest = 16777216;
  static constexpr Size patience = 2000;  ///< steps

  /// A scale that is not dynamic stays 1.
  explicit LossScale(bool dynamic = false)
      : value_(dynamic ? first : smallest), dynamic_(dynamic) {}

  double value() const { return value_; }
  /// Returns the number of steps that were skipped because their gradients overflowed.
  Size skipped_steps() const { return skipped_; }
  /// Returns true if an overflow can still halve the scale.
  bool can_shrink() const { return dynamic_ && value_ > smallest; }

  LossScaleState state() const { return {value_, good_, skipped_}; }
  /// Restores a state. The state of a scale that stays 1 does not change the value.
  void set_state(const LossScaleState& state) {
    skipped_ = state.skipped_steps;
    const bool was_dynamic = state.value != smallest || state.skipped_steps > 0;
    if (!dynamic_ || !was_dynamic) return;
    value_ = state.value;
    good_ = state.good_steps;
  }

  void step(bool overflows) {
    if (!dynamic_) return;
    good_ = overflows ? 0 : good_ + 1;
    if (overflows) {
      ++skipped_;
      value_ = value_ / 2 > smallest ? value_ / 2 : smallest;
    } else if (good_ == patience) {
      good_ = 0;
      value_ = value_ * 2 < largest ? value_ * 2 : largest;
    }
  }

 private:
  double value_;
  bool dynamic_;
  Size good_ = 0;  ///< steps since the last change
  Size skipped_ = 0;
};

}  // namespace tessera
