// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/base/other_names.hpp>
#include <tessera/base/text.hpp>

namespace tessera {
namespace {

/// No name is longer. Comparing two words of a million letters would take hours.
constexpr Size longest_word = 256;

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

}  // namespace

Size edit_distance(std::string_view a, std::string_view b) {
  // Keeps three rows of the table, because a swap needs the row before the last.
  std::vector<Size> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = static_cast<Size>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<Size>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::optional<std::string> suggest_nearest(std::string_view word,
                                           std::span<const std::string> candidates) {
  const std::vector<std::string_view> views(candidates.begin(), candidates.end());
  return suggest_nearest(word, views);
}

std::optional<std::string> suggest_nearest(std::string_view word,
                                           std::span<const std::string_view> candidates) {
  if (static_cast<Size>(word.size()) > longest_word) return std::nullopt;
  if (auto known = name_of_other_tool(word, candidates)) return known;
  std::optional<std::string> best;
  Size best_distance = 0;
  for (const std::string_view candidate : candidates) {
    const auto [shorter, longer] =
        std::minmax({static_cast<Size>(word.size()), static_cast<Size>(candidate.size())});
    const Size most = std::max<Size>(longer, 3) / 3;
    if (longer > longest_word || longer - shorter > most) continue;
    const Size distance = edit_distance(word, candidate);
    if (distance > most) continue;
    if (distance == longer) continue;  // nothing in common
    if (!best || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string must_be_one_of(std::string_view wrong, std::span<const std::string_view> names) {
  return "must be one of " + join(names) + did_you_mean(wrong, names);
}

std::string help_footer(std::span<const CommandExamples> examples, std::string_view command,
                        std::string_view note) {
  std::string text = "\nExamples:\n";
  for (const CommandExamples& of : examples)
    if (command.empty() || command == of.command) text += of.lines;
  return fmt::format("{}\n{}", text, note);
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts.begin(), parts.end(), separator));
}

std::string join(std::span<const std::string_view> parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts.begin(), parts.end(), separator));
}

std::vector<std::string> split_text(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::string human_bytes(Size bytes) {
  constexpr std::array units = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (std::abs(bytes) < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // From 1023.995 on, the value would be printed as 1024.00.
  while (std::abs(value) >= 1023.995 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.2f} {}", value, units[unit]);
}

std::string with_thousands(Size n) {
  std::string digits = fmt::format("{}", n);
  const std::size_t first = n < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, 1, ',');
  }
  return digits;
}

std::string human_seconds(double seconds) {
  if (!std::isfinite(seconds)) return fmt::format("{} s", seconds);
  struct Unit {
    double factor;
    const char* name;
  };
  constexpr std::array<Unit, 3> small = {{{1e9, "ns"}, {1e6, "us"}, {1e3, "ms"}}};
  const auto digits = [](double value) {
    const double magnitude = std::abs(value);
    const int decimals = magnitude < 9.995 ? 2 : magnitude < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f}", value, decimals);
  };
  if (seconds == 0) return "0 s";
  for (const Unit& unit : small) {
    const double value = seconds * unit.factor;
    if (std::abs(value) < 999.5) return digits(value) + " " + unit.name;
  }
  return digits(seconds) + " s";
}

std::string human_flops(double flops_per_second) {
  constexpr double giga = 1e9, tera = 1e12;
  return flops_per_second < tera ? fmt::format("{:.3g} GFLOP/s", flops_per_second / giga)
                                 : fmt::format("{:.3g} TFLOP/s", flops_per_second / tera);
}

std::string counted(Size n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string number_ranges(std::span<const int> sorted, std::size_t shortest) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    if (end - i < shortest) end = i + 1;
    parts.push_back(end == i + 1 ? fmt::format("{}", sorted[i])
                                 : fmt::format("{}-{}", sorted[i], sorted[end - 1]));
    i = end;
  }
  return join(parts, ",");
}

std::string rank_list(std::span<const int> ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + number_ranges(ranks, 3);
}

std::vector<std::pair<std::string, std::string>> ranks_by_text(
    const std::map<int, std::string>& texts) {
  std::map<std::string_view, std::vector<int>> ranks;
  for (const auto& [rank, text] : texts) ranks[text].push_back(rank);
  std::vector<std::pair<std::string, std::string>> result;
  for (const auto& [rank, text] : texts) {
    if (ranks[text].front() == rank) result.emplace_back(rank_list(ranks[text]), text);
  }
  return result;
}

std::string one_line(std::string_view text) {
  std::string line;
  for (char c : trim(text)) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (!control) {
      line += c;
    } else if (line.empty() || line.back() != ' ') {
      line += ' ';
    }
  }
  return line;
}

}  // namespace tessera
