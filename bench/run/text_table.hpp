// SPDX-License-Identifier: Apache-2.0
// Tables for the terminal.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace tessera::bench {

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
