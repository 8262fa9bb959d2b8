// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>

namespace tessera {

/// What a LossScale goes on from.
struct LossScaleState {
  double value = 1;
  Size good_steps = 0;  ///< since the value last changed
  Size skipped_steps = 0;
  friend bool operator==(const LossScaleState&, const LossScaleState&) = default;
};

/// By how much the loss is multiplied so that gradients are not too small for a 16-bit type
/// (Micikevicius et al. 2018, "Mixed Precision Training", section 3.2): halved when they overflow,
/// doubled after many steps in which they did not. The same on all ranks, as they agree on that.
class LossScale {
 public:
  static constexpr double first = 32768, smallest = 1, largest = 16777216;
  static constexpr Size patience = 2000;  ///< steps

  /// One that stays 1 unless `dynamic`.
  explicit LossScale(bool dynamic = false)
      : value_(dynamic ? first : smallest), dynamic_(dynamic) {}

  double value() const { return value_; }
  /// Steps whose gradients overflowed, and which changed nothing else.
  Size skipped_steps() const { return skipped_; }
  /// Whether an overflow can be answered with a smaller one.
  bool can_shrink() const { return dynamic_ && value_ > smallest; }

  LossScaleState state() const { return {value_, good_, skipped_}; }
  /// Goes on from there; from its own first value if the state is of one that stays 1.
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
