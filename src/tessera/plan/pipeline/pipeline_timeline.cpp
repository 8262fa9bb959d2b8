// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include <tessera/plan/pipeline/pipeline_timeline.hpp>

namespace tessera {
namespace {

double seconds_of(PassKind kind, const PipelineTimes& times) {
  switch (kind) {
    case PassKind::forward:
      return times.forward;
    case PassKind::backward:
      return times.input_gradients + times.weight_gradients;
    case PassKind::input_gradients:
      return times.input_gradients;
    case PassKind::weight_gradients:
      return times.weight_gradients;
  }
  return 0;
}

}  // namespace

PipelineTimeline time_passes(const PassLists& passes, const PipelineShape& shape,
                             const PipelineTimes& times) {
  PipelineTimeline timeline;
  timeline.stages.resize(passes.size());
  std::map<PlacedPass, double> ends;
  double busy = 0;
  // In a valid schedule some stage can always go on, so each round times at least one pass.
  for (bool moves = true; moves;) {
    moves = false;
    for (std::size_t k = 0; k < passes.size(); ++k) {
      std::vector<TimedPass>& own = timeline.stages[k];
      while (own.size() < passes[k].size()) {
        const PlacedPass next{static_cast<Size>(k), passes[k][own.size()]};
        double begin = own.empty() ? 0 : own.back().end;
        if (const auto before = producer_of(next, shape)) {
          const auto end = ends.find(*before);
          if (end == ends.end()) break;
          begin = std::max(begin, end->second + (before->stage == next.stage ? 0 : times.message));
        }
        const double seconds =
            seconds_of(next.pass.kind, times) / static_cast<double>(shape.virtual_stages);
        own.push_back({next.pass, begin, begin + seconds});
        ends[next] = begin + seconds;
        timeline.makespan = std::max(timeline.makespan, begin + seconds);
        busy += seconds;
        moves = true;
      }
    }
  }
  if (timeline.makespan > 0)
    timeline.bubble = 1 - busy / (timeline.makespan * static_cast<double>(passes.size()));
  return timeline;
}

std::string draw(const PipelineTimeline& timeline, const PipelineShape& shape, Size columns) {
  // A column is one unit: the time 1 of a stage, divided among its chunks.
  const double units = static_cast<double>(shape.virtual_stages);
  const auto width = static_cast<Size>(std::llround(timeline.makespan * units));
  std::vector<std::vector<std::string>> cells;
  std::size_t cell_width = 0;
  for (const std::vector<TimedPass>& stage : timeline.stages) {
    std::vector<std::string>& row = cells.emplace_back(width, "..");
    for (const TimedPass& timed : stage) {
      const std::string cell = short_name(timed.pass, shape);
      cell_width = std::max(cell_width, cell.size());
      std::fill(row.begin() + std::llround(timed.begin * units),
                row.begin() + std::llround(timed.end * units), cell);
    }
  }
  const Size in_a_line = std::max<Size>(1, (columns - 10) / static_cast<Size>(cell_width + 1));
  std::string text;
  constexpr Size most_blocks = 5;
  for (Size begin = 0; begin < width; begin += in_a_line) {
    if (begin > 0) text += "\n";
    if (begin == most_blocks * in_a_line)
      return text + fmt::format("  ... and so on, up to unit {}\n", width);
    for (std::size_t k = 0; k < cells.size(); ++k) {
      std::string line = fmt::format("  stage {}", k);
      for (Size i = begin; i < std::min(width, begin + in_a_line); ++i)
        line += fmt::format(" {:<{}}", cells[k][i], cell_width);
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
  }
  return text;
}

}  // namespace tessera
