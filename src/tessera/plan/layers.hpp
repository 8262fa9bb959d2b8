// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <tessera/mesh/placement.hpp>
#include <tessera/mesh/redistribute_plan.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// Where the tensors of one layer lie along the axis `model`. All of it follows from the kernel
/// (in, out): Shard(1) makes the layer column-parallel, Shard(0) row-parallel.
struct LayerLayout {
  Placement kernel;
  Placement input;           ///< of x (rows, in) as the product needs it
  Placement product;         ///< of x kernel; Partial in a row-parallel layer
  Placement output;          ///< of what the layer gives, (rows, out)
  Placement input_gradient;  ///< of dz kernel^T; Partial in a column-parallel layer

  Placement bias() const {
    return kernel.is_shard(1) ? Placement::shard(0) : Placement::replicate();
  }
};

/// The layouts of a model's layers, and what lies between them. Index `layers` stands for the loss,
/// which reads the last output, and every rank needs it whole.
class Layouts {
 public:
  /// From the rules, or the specs of single parameters. Throws ConfigError for specs that do not
  /// fit each other or shard over another axis.
  explicit Layouts(const PlanInput& input);

  const LayerLayout& operator[](Size layer) const { return layers_[layer]; }
  Size size() const { return static_cast<Size>(layers_.size()); }

  /// What turns the product of `layer` into its output.
  Transition to_output(Size layer) const;
  /// What turns the output of the layer before into the input of `layer`.
  Transition to_input(Size layer) const;
  /// What turns the gradient that `layer` gives for its input into that of the output before; none
  /// for layer 0, whose input is data.
  Transition to_gradient(Size layer) const;
  /// The output is sharded by rows (sequence parallel): its gradient is gathered before products.
  bool by_rows(Size layer) const { return layers_[layer].output.is_shard(0); }
  /// Whether the input must be made again for the backward pass: its memory serves others between.
  bool remake_input(Size layer) const;

  /// The model as the ranks with this coordinate along `model` hold it.
  ModelSpec local_model(const ModelSpec& model, Size coordinate) const;
  /// First row and column of that rank's kernel block in the whole kernel.
  Block kernel_block(const ModelSpec& model, Size layer, Size coordinate) const;

 private:
  Placement output_before(Size layer) const;
  std::vector<LayerLayout> layers_;
  Size model_ranks_ = 1;
};

}  // namespace tessera
