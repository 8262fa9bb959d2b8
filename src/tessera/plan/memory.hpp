// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <tessera/plan/layers.hpp>
#include <tessera/plan/plan_input.hpp>
#include <tessera/plan/units.hpp>

namespace tessera {

/// Bytes of device memory on one rank; allocated once, before the first step.
struct MemoryPlan {
  Size parameters = 0;
  Size gradients = 0;
  Size moments = 0;
  Size gathered_units = 0;   ///< sharded parameters while they are used
  Size unit_gradients = 0;   ///< sharded gradients before they are reduced, and as they come back
  Size activations = 0;      ///< of one microbatch, with the buffers of their gradients
  Size redistributions = 0;  ///< of activations along `model`
  Size scratch = 0;          ///< rounded copies of matmul operands
  Size sums = 0;             ///< an epoch's loss sums, partial norms, finite flag, checksums
  Size data = 0;             ///< this rank's rows of the data set
  /// What training state needs, whatever the batch.
  Size persistent() const { return parameters + gradients + moments; }
  Size total() const;
};

/// The parts of a memory plan, in the order in which they are shown.
struct MemoryRow {
  const char* name;
  Size MemoryPlan::*bytes;
};
inline constexpr std::array<MemoryRow, 10> memory_rows{{
    {"parameters", &MemoryPlan::parameters},
    {"gradients", &MemoryPlan::gradients},
    {"moments", &MemoryPlan::moments},
    {"gathered_units", &MemoryPlan::gathered_units},
    {"unit_gradients", &MemoryPlan::unit_gradients},
    {"activations", &MemoryPlan::activations},
    {"redistributions", &MemoryPlan::redistributions},
    {"scratch", &MemoryPlan::scratch},
    {"sums", &MemoryPlan::sums},
    {"data", &MemoryPlan::data},
}};

inline Size MemoryPlan::total() const {
  Size bytes = 0;
  for (const MemoryRow& row : memory_rows) bytes += this->*row.bytes;
  return bytes;
}

/// One rank's place among the ranks that share its microbatches, and how many rows these have.
struct LocalRows {
  Size microbatch = 0;  ///< most rows of a microbatch
  Size model_ranks = 1;
  Size model_coordinate = 0;
  /// Rows of a layer's output: all, or the own part of them.
  Size of(const Layouts& layouts, Size layer) const;
};

/// Elements of what a layer chain keeps between forward and backward.
struct ActivationElements {
  Size outputs = 0;         ///< of every layer
  Size preactivations = 0;  ///< of the layers whose activation's derivative needs them
  /// Gradients of activations lie in two buffers in turn: that of layer l's output in buffer
  /// (last - l) mod 2.
  Size gradients[2] = {0, 0};
  /// Where a redistributed input, a gathered gradient or what is to be redistributed lies.
  Size redistributed = 0;
  /// The same, cut along columns into the parts that messages carry.
  Size packed = 0;
  Size total() const { return outputs + preactivations + gradients[0] + gradients[1]; }
};
/// `local`: the model as the rank holds it; `whole`: the model.
ActivationElements activation_elements(const Layouts& layouts, const ModelSpec& local,
                                       const ModelSpec& whole, const LocalRows& rows);

/// Elements of the rounded copies of a product's left and right operand, over all products of a
/// step. Nothing is rounded in strict precision, nor where a product is no matrix-matrix product.
struct MatmulScratch {
  Size left = 0;
  Size right = 0;
};
MatmulScratch matmul_scratch(MatmulPrecision precision, const ModelSpec& local, Size rows);

/// Bytes that one allocation of a View takes: Kokkos rounds up to a multiple of 8.
Size allocated_bytes(Size elements, Size element_bytes);

}  // namespace tessera
