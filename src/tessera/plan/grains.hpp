// SPDX-License-Identifier: Apache-2.0
// The parts of a batch and of a layer that ranks and microbatches get. With Numerics::reproducible,
// a microbatch is a grain, which is the same on every mesh (README.md).
#pragma once

#include <vector>

#include <tessera/base/pair_tree.hpp>
#include <tessera/nn/layers/layer_spec.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// Returns the place of a rank among the ranks with different samples of a batch. Ranks whose
/// gradients are summed first are neighbours.
Size batch_coordinate(const PlanInput& input, Size rank);

/// Returns the number of the rank's first loss sum among the PlanInput::loss_sums() of a batch.
Size first_loss_sum(const PlanInput& input, Size rank);

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

/// Returns the number of blocks of rows, a power of two, over which the engine sums the gradients
/// of a layer's parameters in a tree, because `model` may split these rows. 1 if it may not.
Size row_blocks(const PlanInput& input, const LayerSpec& layer);

/// With Numerics::reproducible, makes a microbatch of each grain of a rank. Throws ConfigError,
/// with the nearest value that would do, if ranks would get parts of grains, or if `microbatches`
/// is neither 1, the default, nor the number of a rank's grains.
void set_grains(PlanInput& input);
/// Throws ConfigError if ranks of `model` would get parts of blocks in these layouts.
void check_grains(const PlanInput& input, const std::vector<Layout>& layouts);

}  // namespace tessera
