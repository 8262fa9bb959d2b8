// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <tessera/base/text.hpp>

#include "results/result_parts.hpp"
#include "run/console.hpp"
#include "run/text_table.hpp"

namespace tessera::bench {
namespace {

/// Returns the ids, and the factors that an id does not name.
std::vector<TextColumn> case_columns(const std::vector<Case>& cases) {
  TextColumn ids{"case", {}, true, false, -1};
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
  if (point.skip_reason) return {"", "", "", "skipped"};
  const Plan plan = plan_of(point.config, point.ranks());
  const Size memory = largest_memory(plan).memory.total();
  return {human_bytes(memory), human_bytes(step_bytes(plan)),
          fmt::format("{:.4g}", plan.flops.total() / 1e9),
          fits(memory, study.limits) ? "" : "exceeds limits.memory_bytes"};
}

}  // namespace

std::string case_list(const Study& study, const std::vector<Case>& cases) {
  std::vector<TextColumn> columns = case_columns(cases);
  const std::size_t first = columns.size();
  for (const char* title : {"ranks", "memory", "sent a step", "GFLOP"}) columns.push_back({title});
  columns.push_back({"", {}, true});
  Reasons reasons;
  Size skipped = 0, most = 0;
  for (const Case& point : cases) {
    columns[first].cells.push_back(std::to_string(point.ranks()));
    const auto cells = needs(study, point);
    for (std::size_t c = 0; c < cells.size(); ++c) columns[first + 1 + c].cells.push_back(cells[c]);
    if (point.skip_reason) {
      ++skipped;
      reasons[*point.skip_reason].push_back(point.id);
    } else {
      most = std::max(most, point.ranks());
    }
  }
  std::string text = table_text(std::move(columns));
  if (skipped > 0) text += "\nskipped, with the reason\n" + reasons_text(reasons);
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
  Reasons notes;
  Size runs = 0;
  for (const Case& point : cases) {
    const Selected selected = select(point);
    if (selected.what == Selected::What::run) ++runs;
    const char* what = names[static_cast<std::size_t>(selected.what)];
    columns.back().cells.push_back(what);
    if (!selected.note.empty())
      notes[fmt::format("{}: {}", what, selected.note)].push_back(point.id);
  }
  return table_text(std::move(columns)) + "\n" + reasons_text(notes) +
         fmt::format("{} of {} cases would run\n", runs, cases.size());
}

}  // namespace tessera::bench
