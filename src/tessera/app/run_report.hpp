// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/config/config.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/tensor/mesh_shape.hpp>
#include <tessera/train/reporter.hpp>
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

/// Returns the line that shows the progress of a training.
std::string training_line(const TrainingProgress& progress);

/// Returns lines with the last validation loss and the usual metric, or "" without validation.
std::string validation_text(const Config& config, const TrainingMetrics& metrics);

/// Returns samples, epochs and losses of all validations, the "smallest" loss with its epoch, and
/// if they exist the "parts" by name (Validation::parts), the "measure" with its name and the
/// "best_loss", the smallest possible one.
nlohmann::json validation_json(const Config& config, const TrainingMetrics& metrics);

/// Returns the parts of a loss in parentheses, " (cross_entropy 2.1, balance_loss 0.01)", or "" for
/// none.
std::string parts_text(const std::vector<NamedNumber>& parts);

/// Returns the results as JSON; the caller adds configuration and provenance.
nlohmann::json results_json(const TrainingMetrics& metrics);

/// Returns the first difference between plan and measurement on this rank, or "".
std::string plan_violation(const TrainingMetrics& metrics);

}  // namespace tessera
