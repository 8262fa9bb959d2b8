// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/engine/arenas.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/random/fill.hpp>

namespace tessera {

/// Returns the run of a piece that begins at its element `first`, in rows and columns of the whole
/// tensor. Only the first or the last dimension of the tensor may be split.
BlockRun run_of(const Shape& shape, const Piece& piece, Size first);

/// Draws the initial parameters that `rank` keeps. Each element depends only on the model's seed,
/// the parameter's stream and the place of the element in the whole tensor, and is rounded to T.
/// `held` tells what `parameters` keeps of buckets. T: float, double, BFloat16 or Float16.
template <class T>
void draw_parameters(const Plan& plan, Size rank, const StateArena<T>& parameters, Held held);

}  // namespace tessera
