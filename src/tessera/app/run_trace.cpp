// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <tessera/app/run_trace.hpp>
#include <tessera/comm/agree.hpp>
#include <tessera/io/whole_file.hpp>
#include <tessera/plan/memory_timeline.hpp>
#include <tessera/process/log.hpp>
#include <tessera/trace/chrome_trace.hpp>
#include <tessera/trace/waits.hpp>

namespace tessera {
namespace {

/// Events of all ranks in a file: rank 0 holds them in memory, 1 kB each, and viewers load 150 B
/// each.
constexpr Size most_traced_events = 400'000;

void warn_of_missing_steps(const std::string& file, const std::vector<RankTrace>& ranks) {
  Size left_out = 0;
  for (const RankTrace& rank : ranks) left_out += rank.left_out;
  if (left_out > 0)
    log_warning(fmt::format(
        "{}: has the first {} regions and calls of each rank; {} are left out. Trace fewer "
        "steps with --trace-steps.",
        file, most_traced_events / static_cast<Size>(ranks.size()), left_out));
  else if (std::all_of(ranks.begin(), ranks.end(),
                       [](const RankTrace& rank) { return rank.regions.empty(); }))
    log_warning(
        fmt::format("{}: is empty, because the run ended before the steps of --trace-steps", file));
}

}  // namespace

void RunTrace::begin() {
  const Size ranks = mesh_.world().is_fake() ? 1 : mesh_.world().size();
  // Leaving this call together, the ranks start their clocks together.
  collectively(mesh_.world(), [] {});
  timer_.emplace(std::max<Size>(1, most_traced_events / ranks));
}

void RunTrace::write(const Plan& plan, Size measured) {
  if (std::exchange(is_written_, true)) return;
  RankTrace mine = timer_ ? timer_->trace() : RankTrace{};
  timer_.reset();
  mine.add_memory(measured, memory_timeline(plan, mesh_.rank()));
  const std::vector<RankTrace> ranks = gather_traces(mesh_.world(), plan.input.mesh, mine);
  collectively(mesh_.world(), [&] {
    if (!mesh_.world().is_first()) return;
    write_text(file_, chrome_trace(ranks, first_step_, mesh_.world().is_fake() ? mesh_.rank() : 0)
                              .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
                          "\n");
    warn_of_missing_steps(file_, ranks);
  });
}

}  // namespace tessera
