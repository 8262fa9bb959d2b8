// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <tessera/predict/advice.hpp>

namespace tessera {

/// The parts of a predicted step, a line each.
std::string step_text(const Plan& plan, const Machine& machine, const SimulatedStep& step);
nlohmann::json to_json(const Machine& machine, const SimulatedStep& step);

/// The ten best candidates with the reason why each is slower than the best, and those that need
/// most memory beyond what there is, up to five.
std::string advice_text(const Advice& advice, const Machine& machine);
nlohmann::json advice_json(const Advice& advice, const Machine& machine);

}  // namespace tessera
