// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/random.hpp"
#include "engine/training_support.hpp"

namespace tessera::train_test {

/// Draws a kind of model for the experiment's mesh, and its sizes: 1, primes and numbers below the
/// number of ranks. `of_experts`: transformers with experts.
void randomize_model(Random& random, Experiment& setup, bool of_experts);

}  // namespace tessera::train_test
