// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <tessera/predict/advice.hpp>

namespace tessera {

/// Returns the rates of a predicted step and its parts, one per line. The time of a call is also
/// that which computation hides; the time of its part is not.
std::string step_text(const Plan& plan, const Machine& machine, const SimulatedStep& step);
/// Returns all that step_text() says, and to_json() only the seconds.
nlohmann::json step_json(const Plan& plan, const Machine& machine, const SimulatedStep& step);
nlohmann::json to_json(const Machine& machine, const SimulatedStep& step);

/// Tells how much of a machine's memory a rank needs, or how much it lacks.
std::string memory_text(const Machine& machine, Size needed);

/// Returns a line with the fastest candidate that a search has found so far.
std::string progress_text(const SearchState& state);

/// Lists the ten fastest candidates, each with the reason why it is slower than the fastest, and up
/// to five candidates that need more memory than a rank has.
std::string advice_text(const Advice& advice, const Machine& machine);
nlohmann::json advice_json(const Advice& advice, const Machine& machine);

}  // namespace tessera
