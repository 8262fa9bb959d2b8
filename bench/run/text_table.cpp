// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/plan/layout/rank_groups.hpp>

#include "results/result_parts.hpp"
#include "run/console.hpp"
#include "study/study.hpp"

namespace tessera::bench {
namespace {

using Cells = std::vector<std::string>;

bool all_equal(const Cells& cells) {
  return std::adjacent_find(cells.begin(), cells.end(), std::not_equal_to<>()) == cells.end();
}

/// Returns the lines of a title: "mixed_", "precision".
Cells title_of(const TextColumn& column) {
  Cells lines = split_text(column.title, '_');
  for (std::size_t line = 0; line + 1 < lines.size(); ++line) lines[line] += '_';
  return lines;
}

std::size_t width_of(const TextColumn& column) {
  std::size_t width = 0;
  for (const std::string& line : title_of(column)) width = std::max(width, line.size());
  for (const std::string& cell : column.cells) width = std::max(width, cell.size());
  return width;
}

/// Returns the width of the table; a space separates columns.
std::size_t width_of(const std::vector<TextColumn>& columns) {
  std::size_t width = 0;
  for (const TextColumn& column : columns) width += width_of(column) + 1;
  return width - 1;
}

/// Returns the number of different rows.
std::size_t num_different(const std::map<std::string, Cells>& columns, std::size_t rows) {
  std::set<Cells> different;
  for (std::size_t row = 0; row < rows; ++row) {
    Cells cells;
    for (const auto& [key, column] : columns) cells.push_back(column[row]);
    different.insert(std::move(cells));
  }
  return different.size();
}

/// "distributed.schedule" -> "schedule", "model.kind" -> "model"
std::string short_key(std::string key) {
  if (key.ends_with(".kind")) key.resize(key.size() - 5);
  return key.substr(key.rfind('.') + 1);
}

void shorten(TextColumn& column, std::size_t width) {
  const auto cut = [&](std::string& text) {
    if (text.size() > width) text = text.substr(0, width - 2) + "..";
  };
  cut(column.title);
  for (std::string& cell : column.cells) cut(cell);
}

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

std::vector<TextColumn> factor_columns(const std::vector<nlohmann::json>& factors) {
  std::vector<TextColumn> columns{{"strategy", {}, true, true},
                                  {"mesh", {}, true, true},
                                  {"ranks", {}, false, true},
                                  {"batch", {}, false, true, 0, "global batch"},
                                  {"mb", {}, false, true, 0, "microbatches"}};
  constexpr const char* keys[] = {"strategy", "mesh", "ranks", "global_batch", "microbatches"};
  std::map<std::string, Cells> others;
  for (std::size_t row = 0; row < factors.size(); ++row) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const nlohmann::json& value = factors[row].at(keys[c]);
      columns[c].cells.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
    for (const std::string& text : other_factors(factors[row])) {
      Cells& cells = others[text.substr(0, text.find('='))];
      cells.resize(factors.size());
      cells[row] = text.substr(text.find('=') + 1);
    }
  }
  std::vector<std::string> order;
  for (const auto& [key, cells] : others) order.insert(order.begin(), key);
  // The kind of the model names what follows from it, and the schedule its virtual stages.
  std::stable_partition(order.begin(), order.end(), [](auto& key) { return key != "model.kind"; });
  const std::size_t different = num_different(others, factors.size());
  for (const std::string& key : order) {
    auto rest = others;
    rest.erase(key);
    if (!all_equal(others[key]) && num_different(rest, factors.size()) == different)
      others = std::move(rest);
  }
  for (auto& [key, cells] : others)
    columns.push_back({short_key(key), std::move(cells), true, true});
  return columns;
}

std::string wrapped(const std::vector<std::string>& parts, const std::string& separator,
                    const std::string& indent, std::size_t width) {
  std::string text, line;
  for (const std::string& part : parts) {
    if (!line.empty() && line.size() + part.size() + separator.size() > width) {
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
      line.clear();
    }
    line += (line.empty() ? indent : "") + part + separator;
  }
  if (line.empty()) return text;
  line.resize(line.size() - separator.size());
  return text + line + "\n";
}

std::string reasons_text(Reasons reasons) {
  constexpr std::size_t named = 3;
  std::string text;
  for (auto& [reason, names] : reasons) {
    const std::size_t more = names.size() - std::min(names.size(), named);
    names.resize(names.size() - more);
    text += wrapped(split_text(reason, ' '), " ", "  ");
    if (more > 0) names.push_back(fmt::format("and {} more", more));
    text += wrapped(names, ", ", "    ");
  }
  return text;
}

std::string table_text(std::vector<TextColumn> columns) {
  std::vector<std::string> above;
  const std::size_t rows = columns.front().cells.size();
  std::erase_if(columns, [&](const TextColumn& column) {
    if (!all_equal(column.cells) || (rows == 1 && !column.cells.front().empty())) return false;
    if (rows > 0 && column.cells.front().empty()) return true;
    if (rows > 0 && column.may_fold)
      above.push_back((column.long_title.empty() ? column.title : column.long_title) + " " +
                      column.cells.front());
    return column.may_fold;
  });
  while (width_of(columns) > table_width) {
    const auto most = std::max_element(columns.begin(), columns.end(), [](auto& a, auto& b) {
      return std::pair(a.spare, a.is_text ? width_of(a) : 0) <
             std::pair(b.spare, b.is_text ? width_of(b) : 0);
    });
    const std::size_t too_wide = width_of(columns) - table_width, own = width_of(*most);
    if (most->spare > 0) {
      columns.erase(most);
      continue;
    }
    shorten(*most, std::max<std::size_t>(8, own - std::min(own, too_wide)));
    if (width_of(*most) == own) break;
  }
  std::string text = wrapped(above, ", ", "");
  if (!text.empty()) text += "\n";
  const auto add = [&](auto cell) {
    std::string line;
    for (const TextColumn& column : columns)
      line += fmt::format(fmt::runtime(column.is_text ? "{:<{}} " : "{:>{}} "), cell(column),
                          width_of(column));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  std::size_t height = 0;
  for (const TextColumn& column : columns) height = std::max(height, title_of(column).size());
  for (std::size_t line = 0; line < height; ++line)
    add([&](const TextColumn& column) {
      const Cells title = title_of(column);
      return line + title.size() < height ? "" : title[line + title.size() - height];
    });
  text += std::string(width_of(columns), '-') + "\n";
  for (std::size_t row = 0; row < rows; ++row)
    add([&](const TextColumn& column) { return column.cells[row]; });
  return text;
}

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
