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
  Size copies = 0;          ///< of parameters in the shorter type that layers compute with
  Size gathered_units = 0;  ///< sharded parameters while they are used
  Size unit_gradients = 0;  ///< sharded gradients before they are reduced, and as they arrive
  Size activations = 0;     ///< outputs, their gradients, and what redistributions need
  Size scratch = 0;         ///< rounded or widened operands of products; what layers need
  Size sums = 0;            ///< an epoch's loss sums, partial norms, finite flag, checksums
  Size data = 0;            ///< this rank's rows of the data set, and what it takes to make them
  /// What training state needs, whatever the batch.
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

/// On the rank that has most. Nothing is rounded in strict precision, nor where a product is no
/// matrix-matrix product; everything is widened where 16-bit products are emulated.
MatmulScratch matmul_scratch(const Plan& plan, Size rank);

/// Elements that the layers of a rank's stage use in turn, on the rank that has most.
Size layer_scratch(const Plan& plan, Size rank);

/// Bytes that one allocation of a View takes: Kokkos rounds up to a multiple of 8.
Size allocated_bytes(Size elements, Size element_bytes);

}  // namespace tessera
