// SPDX-License-Identifier: Apache-2.0
// Passes over the naive list of a chunk. Each does one thing. Only stream_moves() changes bits of a
// step: it adds in another order.
#pragma once

#include <utility>

#include <tessera/plan/pass/naive_pass.hpp>

namespace tessera::detail {

/// Returns the gradients of inputs and those of parameters as two passes of a layer.
std::pair<Backward, Backward> split_gradients(const Backward& all);

/// Splits the backward pass of layers with products into the gradients of inputs and, right behind
/// them, the gradients of parameters.
void split_weight_gradients(const PlanInput& input, ChunkPass& chunk);

/// Moves the gradients that were split off to ChunkPass::weights. With `drops`, keeps less of the
/// forward pass of the latest chunk, and repeats the rest where the backward pass reads it: layers
/// that kept_tensors() does not keep, and redistributions, except sums, exchanges with ranks of
/// `expert`, and the last one of a chunk, which is read first.
void drop_tensors(const PlanInput& input, NaivePass& pass, Range layers, bool drops);

/// Leaves out copies of gradients that are not read again, and lets layers add to a gradient, where
/// their kernels can, in place of an addition behind them.
void join_gradients(const PlanInput& input, ChunkPass& chunk, const std::vector<Slot>& slots);

/// Cuts moves of rows along `model` beside a product, and the product, into a piece for each rank:
/// while messages round the ring of ranks move a piece, ranks compute another one. A product may
/// read gathered rows, or make terms whose sums are scattered to rows (Wang et al. 2023). `model`
/// must split its parameters: ranks sum the gradients of those that all have in another order.
void stream_moves(const PlanInput& input, const std::vector<LayerPlacements>& placed,
                  PassTensors& tensors);

/// Gives each slot its storage, and leaves out slots that no action uses. With `in_place`, outputs,
/// sums over ranks and gradients replace a tensor that is not read again.
void assign_storages(const PlanInput& input, PassTensors& tensors, bool in_place);

}  // namespace tessera::detail
