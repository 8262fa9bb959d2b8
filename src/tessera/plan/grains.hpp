// SPDX-License-Identifier: Apache-2.0
// The parts of a batch and of a layer that ranks and microbatches get. With Numerics::reproducible,
// they consist of whole grains, which no mesh divides (README.md).
#pragma once

#include <vector>

#include <tessera/base/pair_tree.hpp>
#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// Returns the place of a rank among the ranks with different samples of a batch. Ranks whose
/// gradients are summed first are neighbours.
Size batch_coordinate(const PlanInput& input, Size rank);

/// Returns the number of the rank's first loss sum among the PlanInput::loss_grains() of a batch.
Size first_loss_grain(const PlanInput& input, Size rank);

/// Returns the samples that `rank` computes in a batch of `batch` samples: a balanced split along
/// one batch axis after the other, or whole grains.
Range batch_share(const PlanInput& input, Size batch, Size rank);

/// Returns the numbers of samples of the ranks along `expert` that exchange rows with `rank`.
std::vector<Size> expert_samples(const PlanInput& input, Size batch, Size rank);

/// Returns the samples of a microbatch of these ranks together.
Size group_samples(const PlanInput& input, Size batch, Size rank, Size microbatch);

/// Returns the samples of a microbatch of `rank`, counted from the rank's first one.
Range microbatch_samples(const PlanInput& input, Size rank, Size microbatch);

/// Returns the samples of the first microbatch, the largest one, over all ranks.
Size first_microbatch_samples(const PlanInput& input);

/// Returns the blocks in which a layer sums on one rank. All are 1 unless sums have a fixed order.
/// `layout` is the layer's on this mesh.
LayerBlocks layer_blocks(const PlanInput& input, const LayerSpec& layer, const Layout& layout);

/// Returns the number of blocks of the columns of a softmax whose sums have a fixed order. With 1
/// the loss reads all columns at once.
Size softmax_blocks(const PlanInput& input);

/// Returns true if some layout gives the ranks of `model` different rows, over which they then sum
/// the gradients of the layer's parameters.
bool splits_gradient_rows(const LayerSpec& layer);

/// Returns the places of the tree in which the engine sums the gradients of a layer's parameters
/// over a microbatch: grains, or blocks of rows of grains. 1 if the layer's kernels sum themselves.
Size gradient_places(const PlanInput& input, const LayerSpec& layer);

/// Throw ConfigError, with the nearest value that would do, if ranks or microbatches would get
/// parts of grains, or ranks of `model` parts of blocks in these layouts.
void check_grains(const PlanInput& input);
void check_grains(const PlanInput& input, const std::vector<Layout>& layouts);

}  // namespace tessera
