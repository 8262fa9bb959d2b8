// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <tessera/base/types.hpp>
#include <tessera/nn/products/matmul_precision.hpp>

namespace tessera {

struct Plan;

/// Bytes of device memory on one rank; allocated once, before the first step.
struct MemoryPlan {
  Size parameters = 0;
  Size gradients = 0;
  Size moments = 0;
  Size copies = 0;          ///< parameters in the compute type, if it differs from the state type
  Size gathered_units = 0;  ///< sharded parameters while they are used
  Size unit_gradients = 0;  ///< whole gradients before their reduction, and shares in flight
  Size activations = 0;     ///< outputs, their gradients, and scratch of redistributions
  Size scratch = 0;         ///< converted operands of products, scratch of layers
  Size sums = 0;            ///< an epoch's loss sums, partial norms, finite flag, checksums
  Size data = 0;            ///< this rank's rows of the data set, and scratch to make them
  /// Returns the bytes of the training state, which do not depend on the batch.
  Size persistent() const { return parameters + gradients + moments + copies; }
  Size total() const;
};

/// The parts of a memory plan, in the order in which they are shown. They add up to the total.
struct MemoryRow {
  const char* name;
  Size MemoryPlan::*bytes;
};
inline constexpr std::array<MemoryRow, 10> memory_rows{{
    {"parameters", &MemoryPlan::parameters},
    {"gradients", &MemoryPlan::gradients},
    {"moments", &MemoryPlan::moments},
    {"copies", &MemoryPlan::copies},
    {"gathered_units", &MemoryPlan::gathered_units},
    {"unit_gradients", &MemoryPlan::unit_gradients},
    {"activations", &MemoryPlan::activations},
    {"scratch", &MemoryPlan::scratch},
    {"sums", &MemoryPlan::sums},
    {"data", &MemoryPlan::data},
}};

inline Size MemoryPlan::total() const {
  Size sum = 0;
  for (const MemoryRow& row : memory_rows) sum += this->*row.bytes;
  return sum;
}

MemoryPlan plan_memory(const Plan& plan, Size rank);

/// Returns the scratch of products on the rank of the stage that needs most. With TF32 in software,
/// the operands of matrix-matrix products are rounded. With emulated half precision, operands and
/// results of all products are converted.
MatmulScratch matmul_scratch(const Plan& plan, Size rank);

/// Returns the elements of scratch that the layers of the rank's stage share: the maximum over
/// layers and ranks.
Size layer_scratch(const Plan& plan, Size rank);

/// Returns the bytes of one View's allocation. Kokkos rounds up to a multiple of 8.
Size allocated_bytes(Size elements, Size element_bytes);

}  // namespace tessera
