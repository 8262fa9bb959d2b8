// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <tessera/train/trainer.hpp>

namespace tessera {

/// Returns lines with the last validation loss and the usual metric, or "" without validation.
std::string validation_text(const Config& config, const TrainingMetrics& metrics);

/// Returns samples, epochs and losses of all validations, the "smallest" loss with its epoch, and
/// if they exist the "parts" by name (Validation::parts), the "measure" with its name and the
/// "best_loss", the smallest possible one.
nlohmann::json validation_json(const Config& config, const TrainingMetrics& metrics);

}  // namespace tessera
