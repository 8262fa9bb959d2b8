// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <tessera/base/text.hpp>

#include "results/compare.hpp"

namespace tessera::bench {
namespace {

std::string percent(const std::optional<double>& ratio) {
  return ratio && std::isfinite(*ratio) ? fmt::format("{:+.1f}%", 100 * (*ratio - 1)) : "-";
}

std::string step_text(const std::optional<double>& seconds) {
  return seconds ? human_seconds(*seconds) : "";
}

std::string machine_text(const std::optional<double>& ratio) {
  if (!ratio) return "";
  return fmt::format(
      "the machine was {} after, judging by the fixed kernels; changes are corrected for it\n\n",
      *ratio < 1 ? fmt::format("{:.1f}% faster", 100 * (1 / *ratio - 1))
                 : fmt::format("{:.1f}% slower", 100 * (*ratio - 1)));
}

}  // namespace

std::string counts_text(const std::map<std::string, Size>& counts) {
  std::vector<std::string> parts;
  for (const auto& [verdict, count] : counts) parts.push_back(fmt::format("{} {}", count, verdict));
  return join(parts);
}

std::string comparison_text(const Comparison& comparison) {
  std::size_t width = 4;
  for (const ComparedCase& one : comparison.cases) width = std::max(width, one.label.size());
  std::string text =
      fmt::format("before  {}: {}\nafter   {}: {}\n", comparison.before.directory,
                  comparison.before.program, comparison.after.directory, comparison.after.program) +
      machine_text(comparison.machine_ratio);
  const auto add_line = [&](auto... cells) {
    text += fmt::format("{:<{}} {:>9} {:>9} {:>8} {:>8}  {}\n", cells...);
  };
  add_line("case", width, "before", "after", "change", "finds", "");
  for (const ComparedCase& one : comparison.cases)
    add_line(one.label, width, step_text(one.before_step_seconds),
             step_text(one.after_step_seconds), one.ratio ? percent(one.ratio) : "",
             one.ratio ? percent(one.detectable_ratio) : "", one.verdict);
  return text + "\n" + counts_text(comparison.counts) +
         "\nfinds: the smallest change that can be detected with the scatter of these rounds\n";
}

}  // namespace tessera::bench
