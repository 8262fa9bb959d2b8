// SPDX-License-Identifier: Apache-2.0
// The parts of a batch and of a layer that ranks and microbatches get. With Numerics::reproducible,
// a microbatch is a grain, which is the same on every mesh (README.md).
#pragma once

#include <vector>

#include <tessera/base/pair_tree.hpp>
#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/nn/products/sum_blocks.hpp>
#include <tessera/plan/layout/layer_placements.hpp>
#include <tessera/plan/layout/units.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// Returns the place of a rank among the ranks with different samples of a batch. Ranks whose
/// gradients are summed first are neighbours.
Size batch_coordinate(const PlanInput& input, Size rank);

/// Returns the grains of the rank with this place (batch_coordinate()): a part of the balanced
/// split of all. With more ranks than grains some have none.
Range grains_at(const PlanInput& input, Size place);
/// Returns the largest nodes of the tree of the grains that the ranks along these axes have
/// together, for each of `uses` (BucketPlan::uses).
std::vector<Range> nodes_over(const PlanInput& input, AxisSet axes, Size uses, Size rank);
/// Returns the nodes that each rank of a sum of a bucket's gradients over `axes` contributes
/// (TreeTerms). Ranks with different shares of a bucket add up first; then the replicas of a share
/// add up what these have. A rank with experts has the grains of all ranks along `expert`.
std::vector<std::vector<Range>> gradient_nodes(const PlanInput& input, const BucketPlan& bucket,
                                               AxisSet axes, Size rank);

/// Returns the samples that `rank` computes in a batch of `batch` samples: a balanced split along
/// one batch axis after the other, or whole grains.
Range batch_share(const PlanInput& input, Size batch, Size rank);

/// The numbers of samples on a rank in a batch of `batch` samples.
class BatchSamples {
 public:
  BatchSamples(const PlanInput& input, Size batch, Size rank);

  /// Returns the samples of the whole batch, and those of the rank in all microbatches.
  Size global() const { return global_; }
  Size own() const { return of_ranks_[own_].samples; }
  Size microbatches() const { return microbatches_; }
  /// Returns the samples of a microbatch among those of the rank. In a fixed order of sums, ranks
  /// with fewer grains than others have no samples in the last one.
  Range own(Size microbatch) const { return part(of_ranks_[own_], microbatch); }
  /// Returns the microbatches from which on a rank has other numbers of samples than before.
  std::vector<Size> changes() const;
  /// Returns the samples that a tensor has in a microbatch if these axes split its samples. The
  /// tensor has the samples of all ranks along the other axes of the batch; they are no range of
  /// the batch's samples.
  Size in(Size microbatch, AxisSet axes) const;
  /// Returns the ranks that have a microbatch, the first ones of those that exchange samples.
  Size filled(Size microbatch) const;
  /// The samples of a rank, and the number of microbatches that it splits them into.
  struct OfRank {
    Size samples, parts;
  };
  /// Returns those of the rank and of the ranks with which it exchanges samples.
  const std::vector<OfRank>& of_ranks() const { return of_ranks_; }

 private:
  static Range part(const OfRank& of, Size microbatch) {
    return microbatch < of.parts ? balanced_split(of.samples, of.parts, microbatch)
                                 : Range{of.samples, 0};
  }
  Size global_, microbatches_;
  std::size_t own_;  ///< number of the rank in of_ranks_
  AxisSet batch_axes_;
  std::vector<OfRank> of_ranks_;
};

/// Returns the samples of the first microbatch, the largest one, over all ranks.
Size first_microbatch_samples(const PlanInput& input);

/// Splits what `model` splits in Numerics::model_grains blocks. Columns stay together in units,
/// such as those of a head, which are the same for all layers that pass them on.
void split_in_blocks(const PlanInput& input, std::vector<LayerPlacements>& layers);

/// Returns the blocks in which a layer sums on a rank; one each unless sums have a fixed order.
/// `placements` are those of the layer.
LayerBlocks layer_blocks(const PlanInput& input, const LayerSpec& layer,
                         const LayerPlacements& placements, Size rank);

/// Returns the blocks over which the engine sums the gradients of a layer's parameters in a tree,
/// because `model` may split them: of the columns, those of heads, or without units of the rows.
SplitPart gradient_blocks(const PlanInput& input, const LayerSpec& layer,
                          const LayerPlacements& placements, Size rank);
/// Returns the sums that a rank makes of them: one for each of its blocks.
Size gradient_rows(const PlanInput& input, const LayerSpec& layer,
                   const LayerPlacements& placements, Size rank);

/// Returns the elements, with padding, of the gradients of the parameters that layer `l` of the
/// model computes with, in a stage.
Size gradient_elements(const ParameterLayout& layout, const LayerSpec& layer, Size l);

/// With Numerics::reproducible, makes a microbatch of each grain of the rank with the most. Throws
/// ConfigError if `microbatches` is neither 1, the default, nor their number.
void set_grains(PlanInput& input);

}  // namespace tessera
