// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include <tessera/base/text.hpp>

#include "results/compare.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

std::string percent(const Json& ratio) {
  return ratio.is_null() ? "-" : fmt::format("{:+.1f}%", 100 * (ratio.get<double>() - 1));
}

std::string step_text(const Json& seconds) {
  return seconds.is_null() ? "" : human_seconds(seconds);
}

std::string machine_text(const Json& machine) {
  if (machine.is_null()) return "";
  const double ratio = machine;
  return fmt::format(
      "the machine was {} after, judging by the fixed kernels; changes are corrected for it\n\n",
      ratio < 1 ? fmt::format("{:.1f}% faster", 100 * (1 / ratio - 1))
                : fmt::format("{:.1f}% slower", 100 * (ratio - 1)));
}

}  // namespace

std::string counts_text(const Json& counts) {
  std::vector<std::string> parts;
  for (const auto& [verdict, count] : counts.items())
    parts.push_back(fmt::format("{} {}", count.get<Size>(), verdict));
  return join(parts);
}

std::string comparison_text(const Json& comparison) {
  const Json& cases = comparison.at("cases");
  std::size_t width = 4;
  for (const Json& row : cases) width = std::max(width, row.at("label").get<std::string>().size());
  std::string text;
  for (const char* side : {"before", "after"})
    text +=
        fmt::format("{:<6}  {}: {}\n", side, comparison.at(side).at("directory").get<std::string>(),
                    comparison.at(side).at("program").get<std::string>());
  text += machine_text(comparison.at("machine_ratio"));
  const auto add_line = [&](auto... cells) {
    text += fmt::format("{:<{}} {:>9} {:>9} {:>8} {:>8}  {}\n", cells...);
  };
  add_line("case", width, "before", "after", "change", "finds", "");
  for (const Json& row : cases) {
    const bool is_compared = !row.at("ratio").is_null();
    add_line(row.at("label").get<std::string>(), width, step_text(row.at("before_step_seconds")),
             step_text(row.at("after_step_seconds")), is_compared ? percent(row.at("ratio")) : "",
             is_compared ? percent(row.at("detectable_ratio")) : "",
             row.at("verdict").get<std::string>());
  }
  return text + "\n" + counts_text(comparison.at("counts")) +
         "\nfinds: the smallest change that can be detected with the scatter of these rounds\n";
}

}  // namespace tessera::bench
