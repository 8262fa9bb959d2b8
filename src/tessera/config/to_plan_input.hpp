// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/config/config.hpp>
#include <tessera/nn/models/model_spec.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

/// Converts a valid configuration to the input of a plan on a mesh that fits it. `traits` are those
/// of the device that executes the plan.
PlanInput plan_input(const Config& config, const MeshShape& mesh,
                     const DeviceTraits& traits = traits_of_this_device());

/// Returns the layers of the configured model. Throws ConfigError for wrong sizes and for keys that
/// belong to another kind.
ModelSpec make_model(const ModelConfig& config);
/// Returns the model, whose loss leaves out the targets of training.ignore_index.
ModelSpec make_model(const Config& config);

/// Returns the key that sets the size of a model of this kind.
const char* size_key(ModelKind kind);

}  // namespace tessera
