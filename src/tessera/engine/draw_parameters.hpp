// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/engine/arenas.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// The initial parameters that `rank` keeps: each element depends on the model's seed, the
/// parameter's stream and its place in the whole tensor only. T: float, double.
template <class T>
void draw_parameters(const Plan& plan, Size rank, const StateArena<T>& parameters);

}  // namespace tessera
