// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/config/config.hpp>
#include <tessera/nn/models/model_spec.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// What the plan of a valid configuration depends on, on a mesh that fits it.
PlanInput plan_input(const Config& config, const MeshShape& mesh);

/// The layers of the configured model. Throws ConfigError for sizes that make none, and for keys
/// that belong to another kind.
ModelSpec make_model(const ModelConfig& config);

/// The key that makes the model large.
const char* size_key(ModelKind kind);

}  // namespace tessera
