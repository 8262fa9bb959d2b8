// SPDX-License-Identifier: Apache-2.0
// Texts and tables for the terminal.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "results/summary.hpp"
#include "run/launch.hpp"

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

/// The largest width of a table of results.
inline constexpr std::size_t table_width = 100;

/// A column with a cell for each row.
struct TextColumn {
  std::string title;
  std::vector<std::string> cells{};
  bool is_text = false;      ///< aligned to the left
  bool may_fold = false;     ///< stands above the table if all cells are equal
  int spare = 0;             ///< the largest go first if the table is too wide; -1: stays as it is
  std::string long_title{};  ///< used above the table; empty: the title
};

/// Returns a column for each factor, without those that follow from other configuration keys:
/// `distributed.virtual_stages` follows from `distributed.schedule` if each schedule has one value.
std::vector<TextColumn> factor_columns(const std::vector<nlohmann::json>& factors);

/// Returns the table without empty columns, and above it what is equal in all rows. It is at most
/// table_width wide: it leaves out spare columns, and then shortens the widest texts.
std::string table_text(std::vector<TextColumn> columns);

/// Returns lines of parts with separators between them, each of at most this width if its parts
/// are.
std::string wrapped(const std::vector<std::string>& parts, const std::string& separator,
                    const std::string& indent, std::size_t width = table_width);

/// Names of cases by what they have in common.
using Reasons = std::map<std::string, std::vector<std::string>>;

/// Returns each reason, and below it the first of its names.
std::string reasons_text(Reasons reasons);

}  // namespace tessera::bench
