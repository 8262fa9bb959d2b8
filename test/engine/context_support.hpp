// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/serial_training.hpp"

namespace tessera::train_test {

/// A mesh, and a strategy on it.
struct Split {
  Axes axes;
  const char* strategy;
};

/// Returns the meshes with an axis `context` of a launch.
inline std::vector<Split> context_splits(Size ranks) {
  switch (ranks) {
    case 4:
      return {{{{"context", 4}}, "data"},
              {{{"data", 2}, {"context", 2}}, "zero1"},
              {{{"context", 2}, {"fsdp", 2}}, "fsdp"},
              {{{"pipeline", 2}, {"context", 2}}, "data"},
              {{{"context", 2}, {"model", 2}}, "tensor"}};
    case 8:
      return {{{{"context", 8}}, "data"},
              {{{"data", 2}, {"fsdp", 2}, {"context", 2}}, "hybrid"},
              {{{"data", 2}, {"context", 2}, {"model", 2}}, "zero2"},
              {{{"pipeline", 2}, {"context", 2}, {"model", 2}}, "fsdp"}};
    default:
      return {{{{"context", ranks}}, "data"}, {{{"context", ranks}}, "fsdp"}};
  }
}

}  // namespace tessera::train_test
