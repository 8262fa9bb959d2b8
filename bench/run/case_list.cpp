// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include <tessera/base/text.hpp>

#include "results/result_parts.hpp"
#include "run/console.hpp"
#include "run/text_table.hpp"

namespace tessera::bench {
namespace {

/// Returns the ids, and the factors that an id does not name.
std::vector<TextColumn> case_columns(const std::vector<Case>& cases) {
  TextColumn ids{"case", {}, true};
  std::vector<nlohmann::json> factors;
  for (const Case& point : cases) {
    ids.cells.push_back(point.id);
    factors.push_back(point.factors);
  }
  std::vector<TextColumn> columns = factor_columns(factors);
  columns.erase(columns.begin(), columns.begin() + 5);
  columns.insert(columns.begin(), std::move(ids));
  return columns;
}

/// The cells of a case after its ranks.
std::array<std::string, 4> needs(const Study& study, const Case& point) {
  if (point.skip_reason) return {"", "", "", "skipped: " + *point.skip_reason};
  const Plan plan = plan_of(point.config, point.ranks());
  const Size memory = largest_memory(plan).memory.total();
  return {human_bytes(memory), human_bytes(step_bytes(plan)),
          fmt::format("{:.4g}", plan.flops.total() / 1e9),
          fits(memory, study.limits) ? "" : "exceeds limits.memory_bytes"};
}

constexpr auto any_width = std::numeric_limits<std::size_t>::max();

}  // namespace

std::string case_list(const Study& study, const std::vector<Case>& cases) {
  std::vector<TextColumn> columns = case_columns(cases);
  const std::size_t first = columns.size();
  for (const char* title : {"ranks", "memory", "sent a step", "GFLOP"}) columns.push_back({title});
  columns.push_back({"", {}, true});
  Size skipped = 0, most = 0;
  for (const Case& point : cases) {
    columns[first].cells.push_back(std::to_string(point.ranks()));
    const auto cells = needs(study, point);
    for (std::size_t c = 0; c < cells.size(); ++c) columns[first + 1 + c].cells.push_back(cells[c]);
    if (point.skip_reason)
      ++skipped;
    else
      most = std::max(most, point.ranks());
  }
  std::string text = table_text(std::move(columns), any_width);
  text += fmt::format(
      "\n{} cases, {} of them skipped; the others need {} ranks\n"
      "memory: device memory of the rank that uses most; sent: payload bytes of the calls of a "
      "step\n",
      cases.size(), skipped, most);
  return text;
}

std::string selection_list(const std::vector<Case>& cases,
                           const std::function<Selected(const Case&)>& select) {
  constexpr std::array names{"run",   "skip",    "keep",
                             "leave", "pending", "give up"};  // in the order of Selected::What
  std::vector<TextColumn> columns = case_columns(cases);
  columns.push_back({"", {}, true});
  Size runs = 0;
  for (const Case& point : cases) {
    const Selected selected = select(point);
    if (selected.what == Selected::What::run) ++runs;
    columns.back().cells.push_back(
        fmt::format("{:<7}  {}", names[static_cast<std::size_t>(selected.what)], selected.note));
  }
  return table_text(std::move(columns), any_width) +
         fmt::format("{} of {} cases would run\n", runs, cases.size());
}

}  // namespace tessera::bench
