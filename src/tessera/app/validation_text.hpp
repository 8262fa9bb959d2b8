// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <tessera/train/trainer.hpp>

namespace tessera {

/// What validations have found, in the terms of the data: lines of the results; "" without any.
std::string validation_text(const Config& config, const TrainingMetrics& metrics);

/// The same as JSON: samples, epochs, losses; "measure", with its name, and "best_loss" where there
/// are such.
nlohmann::json validation_json(const Config& config, const TrainingMetrics& metrics);

}  // namespace tessera
