// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <tessera/config/config.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/tensor/mesh_shape.hpp>
#include <tessera/train/trainer.hpp>

namespace tessera {

/// Returns the text printed before training: back end, devices, mesh, model and data.
std::string opening_text(const Config& config, const MeshShape& mesh, const Topology& topology,
                         const std::string& backend);

/// Returns the text printed after training: losses, times, this rank's traffic and memory, and why
/// training ended; only the latter if no epoch ended. `as_planned`: traffic and memory equal the
/// plan's on every rank.
std::string results_text(const Config& config, const TrainingMetrics& metrics,
                         const MeshShape& mesh, bool as_planned);

/// Returns the results as JSON; the caller adds configuration and provenance.
nlohmann::json results_json(const TrainingMetrics& metrics);

/// Returns the first difference between plan and measurement on this rank, or "".
std::string plan_violation(const TrainingMetrics& metrics);

}  // namespace tessera
