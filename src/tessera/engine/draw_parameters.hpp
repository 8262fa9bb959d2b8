// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/engine/arenas.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// The initial parameters that `rank` keeps: each element depends on the model's seed and its place
/// in the whole tensor only. Layer l draws its kernel from stream 2l of the model's key; 2l + 1 is
/// its bias's, which is zero. T: float, double.
template <class T>
void draw_parameters(const Plan& plan, Size rank, const ParameterArena<T>& parameters);

}  // namespace tessera
