// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/config/config.hpp>
#include <tessera/engine/arenas.hpp>
#include <tessera/engine/dataset.hpp>
#include <tessera/engine/engine.hpp>
#include <tessera/mesh/mesh.hpp>
#include <tessera/nn/gemm.hpp>

namespace tessera::bench {

/// Throws ConfigError unless StepCase can run it on this number of ranks.
void validate_case(const Config& config, Size ranks);

/// A configuration on a mesh, ready to be stepped: what Trainer puts together, with the steps laid
/// open. float32.
class StepCase {
 public:
  /// Collective over `ranks`; the configuration must be valid for them.
  StepCase(const Config& config, const Communicator& ranks);

  const Plan& plan() const { return plan_; }

  /// One step on the next batch, under the plan or another one of the same memory.
  void step() { step(plan_); }
  void step(const Plan& plan);

  /// The matrix products of a step and nothing else: those of the plan's actions, in their order,
  /// on the engine's parameters and gradients and on activations of the same shapes.
  void products();

  /// All epochs of the configuration; seconds in their steps.
  double train();

  /// Kokkos allocations of one more step.
  Size allocations_of_step();

 private:
  void product(const Action& action);

  Config config_;
  Mesh mesh_;
  Plan plan_;
  Dataset<float> data_;
  Engine<float> engine_;
  Gemm<float> gemm_;
  ActivationArena<float> activations_;
  Size steps_ = 0;
};

/// The same step with and without overlap.
Plan with_overlap(const Plan& plan, bool overlap);

/// C = A B of square float32 matrices: what the machine can do at most.
class SquareProduct {
 public:
  explicit SquareProduct(Size n);
  void operator()() const;
  Size flops() const;

 private:
  Matrix<float> a_, b_, c_;
  Gemm<float> gemm_;
};

}  // namespace tessera::bench
