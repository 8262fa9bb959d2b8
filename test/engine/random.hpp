// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include <tessera/base/types.hpp>

namespace tessera::train_test {

/// A generator with the same numbers on every rank and with every standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  /// Returns a number from `low` to `high`, both included.
  Size number(Size low, Size high) {
    return low + static_cast<Size>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  /// Returns true once in `n` calls on average.
  bool once_in(Size n) { return number(1, n) == 1; }
  template <class Values>
  auto one_of(const Values& values) {
    return values[static_cast<std::size_t>(number(0, static_cast<Size>(values.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace tessera::train_test
