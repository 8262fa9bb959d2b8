// SPDX-License-Identifier: Apache-2.0
// What the terminal shows.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "run/selection.hpp"
#include "study/case.hpp"

namespace tessera::bench {

/// Rows of a summary, at most 120 columns wide: the best case with a star, reasons below.
std::string summary_table(const nlohmann::json& summary);

/// "FOM: <key> <number> <unit>" lines of a summary.
std::string figures_of_merit(const nlohmann::json& summary);

/// What follows RESULT: the verdict and counts.
std::string result_text(const nlohmann::json& summary);

/// The cases and what each needs: ranks, device memory, traffic, work.
std::string case_list(const Study& study, const std::vector<Case>& cases);

/// What a launch would do about each case.
std::string selection_list(const std::vector<Case>& cases,
                           const std::function<Selected(const Case&)>& select);

}  // namespace tessera::bench
