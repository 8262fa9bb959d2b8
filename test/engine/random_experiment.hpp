// SPDX-License-Identifier: Apache-2.0
// Random models, meshes, strategies and options.
#pragma once

#include <cstdint>
#include <random>

#include "engine/training_support.hpp"

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

/// Returns a short training of any model on a mesh of this many ranks, under any strategy that the
/// mesh allows. Sizes are 1, primes, and numbers below the number of ranks. If the plan rejects a
/// configuration, draws another one, and fails the test if the message names an unexpected key.
/// `of_experts`: all models are transformers with experts, and meshes may have an axis `expert`.
Experiment random_experiment(Random& random, Size ranks, bool of_experts);

}  // namespace tessera::train_test
