// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <tessera/base/types.hpp>
#include <tessera/nn/products/matmul_precision.hpp>

namespace tessera {

struct Plan;

/// Bytes of device memory on one rank, as Kokkos allocates them. All of it is allocated before the
/// first step.
struct MemoryPlan {
  Size parameters = 0;
  Size gradients = 0;
  Size moments = 0;
  Size copies = 0;          ///< parameters in the compute type, if it differs from the state type
  Size gathered_units = 0;  ///< whole buckets of sharded parameters, while layers use them
  Size unit_gradients = 0;  ///< whole gradients before their reduction, and buffers of reductions
  Size activations = 0;     ///< the frame: outputs, their gradients, scratch of redistributions
  Size scratch = 0;         ///< converted operands of products, scratch of layers
  Size sums = 0;            ///< an epoch's loss sums, partial norms, finite flag, checksums
  Size data = 0;            ///< the rank's samples of the data set, and scratch to make them
  /// Returns the bytes of parameters, gradients and moments, which do not depend on the batch.
  Size persistent() const { return parameters + gradients + moments + copies; }
  Size total() const;
  auto operator<=>(const MemoryPlan&) const = default;
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
static_assert(sizeof(MemoryPlan) == memory_rows.size() * sizeof(Size), "a part has no row");

inline Size MemoryPlan::total() const {
  Size sum = 0;
  for (const MemoryRow& row : memory_rows) sum += this->*row.bytes;
  return sum;
}

/// Elements of scratch that the layers of a rank's stage use in turn: each the maximum over the
/// layers and the ranks of the stage.
struct ScratchPlan {
  /// Scratch of matrix products. TF32 in software rounds the operands of matrix-matrix products
  /// into scratch. Emulated half precision converts the operands and results of all products.
  MatmulScratch products;
  Size layers = 0;  ///< LayerCall::scratch
  /// Open nodes of the trees in which layers sum gradients of parameters over blocks of rows.
  Size gradient_nodes = 0;
  Size gathered_rows = 0;  ///< copies of a layer's operands in a block of positions
};
ScratchPlan plan_scratch(const Plan& plan, Size rank);

/// Returns the bytes of one View's allocation. Kokkos rounds up to a multiple of 8.
Size allocated_bytes(Size elements, Size element_bytes);

}  // namespace tessera
