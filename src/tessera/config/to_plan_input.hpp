// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/config/config.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// What the plan of a valid configuration depends on, on a mesh that fits it.
PlanInput plan_input(const Config& config, const MeshShape& mesh);

}  // namespace tessera
