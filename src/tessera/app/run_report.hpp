// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <tessera/config/config.hpp>
#include <tessera/mesh/mesh_shape.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/train/trainer.hpp>

namespace tessera {

/// What `tessera run` prints before training: back end, devices, mesh, model and data.
std::string opening_text(const Config& config, const MeshShape& mesh, const Topology& topology,
                         const std::string& backend);

/// What it prints after training: losses, times, and this rank's measured traffic and memory.
/// `as_planned`: they are the plan's on every rank.
std::string results_text(const Config& config, const TrainingMetrics& metrics,
                         const MeshShape& mesh, bool as_planned);

/// That a training was stopped, and how to go on with it; "" if it was not.
std::string stopped_text(const Config& config, const TrainingMetrics& metrics);

/// The results as data; the caller adds configuration and provenance.
nlohmann::json results_json(const TrainingMetrics& metrics);

/// Empty if what this rank measured is what was planned; otherwise one line that says what is not.
std::string plan_violation(const TrainingMetrics& metrics);

}  // namespace tessera
