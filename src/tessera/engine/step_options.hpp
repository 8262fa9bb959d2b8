// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/config/config.hpp>
#include <tessera/engine/engine.hpp>

namespace tessera {

/// What a configuration says of a step's computation.
inline StepOptions step_options(const TrainingConfig& training) {
  return {training.loss, training.optimizer, training.clip,
          training.distributed.gradient_reduce_type == "sum"};
}

}  // namespace tessera
