// SPDX-License-Identifier: Apache-2.0
// Texts for the terminal.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "results/summary.hpp"
#include "run/selection.hpp"

namespace tessera::bench {

/// Returns samples/s with four significant digits, or all digits of the integer part, as the report
/// prints them; "" without a value.
std::string rate(std::optional<double> value);

/// Returns the rows of a summary as a table, with a mark at the fastest case of each amount of work
/// and at ties, and the reasons of cases without a speed below.
std::string summary_table(const Summary& summary);

/// Returns the lines "FOM: <key> <number> <unit>" of a summary.
std::string figures_of_merit(const Summary& summary);

/// Returns the text after the verdict of the RESULT line: the counts.
std::string result_text(const Summary& summary);

/// Returns the list of cases with their ranks, device memory, traffic and FLOPs.
std::string case_list(const Study& study, const std::vector<Case>& cases);

/// Returns the list of cases with the decision of a launch about each.
std::string selection_list(const std::vector<Case>& cases,
                           const std::function<Selected(const Case&)>& select);

}  // namespace tessera::bench
