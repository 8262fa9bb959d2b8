// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// Bytes of device memory on one rank; allocated once, before the first step.
struct MemoryPlan {
  Size parameters = 0;
  Size gradients = 0;
  Size moments = 0;
  Size activations = 0;  ///< of one microbatch, with the buffers of their gradients
  Size scratch = 0;      ///< rounded copies of matmul operands
  Size sums = 0;         ///< fp64: an epoch's loss sums by (step, microbatch), the gradient's norm
  Size data = 0;         ///< this rank's rows of the data set
  /// What training state needs, whatever the batch.
  Size persistent() const { return parameters + gradients + moments; }
  Size total() const { return persistent() + activations + scratch + sums + data; }
};

/// Elements of what a layer chain keeps between forward and backward for `rows` rows.
struct ActivationElements {
  Size outputs = 0;         ///< of every layer
  Size preactivations = 0;  ///< of the layers whose activation's derivative needs them
  /// Gradients of activations lie in two buffers in turn: that of layer l's output in buffer
  /// (last - l) mod 2.
  Size gradients[2] = {0, 0};
  Size total() const { return outputs + preactivations + gradients[0] + gradients[1]; }
};
ActivationElements activation_elements(const ModelSpec& model, Size rows);

/// Elements of the rounded copies of a product's left and right operand, over all products of a
/// step. Nothing is rounded in strict precision, nor where a product is no matrix-matrix product.
struct MatmulScratch {
  Size left = 0;
  Size right = 0;
};
MatmulScratch matmul_scratch(const PlanInput& input, Size rows);

/// Bytes that one allocation of a View takes: Kokkos rounds up to a multiple of 8.
Size allocated_bytes(Size elements, Size element_bytes);

/// `microbatch_rows`: most rows of a microbatch on the rank; `data_rows`: its rows of the data set;
/// `steps`: steps of an epoch.
MemoryPlan plan_memory(const PlanInput& input, Size microbatch_rows, Size data_rows, Size steps);

}  // namespace tessera
