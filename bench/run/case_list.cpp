// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include <tessera/base/text.hpp>

#include "results/result_parts.hpp"
#include "run/console.hpp"

namespace tessera::bench {
namespace {

std::size_t id_width(const std::vector<Case>& cases) {
  std::size_t width = 4;
  for (const Case& point : cases) width = std::max(width, point.id.size());
  return width;
}

std::string needs(const Study& study, const Case& point) {
  if (point.skip_reason) return "skipped: " + *point.skip_reason;
  const Plan plan = plan_of(point.config, point.ranks());
  const Size memory = largest_memory(plan).memory.total();
  return fmt::format("{:>10} {:>11} {:>10.4g}{}", human_bytes(memory),
                     human_bytes(step_bytes(plan)), plan.flops.total() / 1e9,
                     fits(memory, study.limits) ? "" : "  exceeds limits.memory_bytes");
}

}  // namespace

std::string case_list(const Study& study, const std::vector<Case>& cases) {
  const std::size_t width = id_width(cases);
  std::string text = fmt::format("{:<{}} {:>5} {:>10} {:>11} {:>10}\n", "case", width, "ranks",
                                 "memory", "sent a step", "GFLOP");
  text += std::string(text.size() - 1, '-') + "\n";
  Size skipped = 0, most = 0;
  for (const Case& point : cases) {
    text += fmt::format("{:<{}} {:>5} {}\n", point.id, width, point.ranks(), needs(study, point));
    if (point.skip_reason)
      ++skipped;
    else
      most = std::max(most, point.ranks());
  }
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
  const std::size_t width = id_width(cases);
  std::string text;
  Size runs = 0;
  for (const Case& point : cases) {
    const Selected selected = select(point);
    if (selected.what == Selected::What::run) ++runs;
    text += fmt::format("{:<{}}  {:<7}{}{}\n", point.id, width,
                        names[static_cast<std::size_t>(selected.what)],
                        selected.note.empty() ? "" : "  ", selected.note);
  }
  return text + fmt::format("{} of {} cases would run\n", runs, cases.size());
}

}  // namespace tessera::bench
