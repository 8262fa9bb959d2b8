// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
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

[[noreturn]] void reject(const PlacedPass& at, const PipelineShape& shape, std::string_view why) {
  throw Error(ExitCode::wrong_result, "pipeline schedule {}: stage {}, {}: {}",
              schedule_name(shape), at.stage, to_string(at.pass, shape), why);
}

class Simulation {
 public:
  Simulation(const PipelineShape& shape, const PipelineTimes& times, std::size_t stages)
      : shape_(shape), times_(times), now_(stages) {
    timeline_.stages.resize(stages);
  }

  PipelineTimeline run(const ActionLists& lists) {
    std::vector<std::size_t> next(lists.size());
    advance_stages(lists, next, [&](std::size_t stage, const PipelineAction& action) {
      return execute({static_cast<Size>(stage), action.pass}, action.step);
    });
    for (std::size_t k = 0; k < lists.size(); ++k)
      if (next[k] < lists[k].size())
        reject({static_cast<Size>(k), lists[k][next[k]].pass}, shape_,
               fmt::format("{} never ends: the stages wait for each other",
                           name_of(lists[k][next[k]].step)));
    check_complete();
    if (timeline_.makespan > 0)
      timeline_.bubble = 1 - busy_ / (timeline_.makespan * static_cast<double>(lists.size()));
    return std::move(timeline_);
  }

 private:
  using Times = std::map<PlacedPass, double>;

  /// Executes the next step of a stage. Returns false, without effect, if the stage has to wait.
  bool execute(const PlacedPass& pass, PipelineStep step) {
    double& now = now_[pass.stage];
    const auto wait = [&](const Times& since, const std::optional<PlacedPass>& other,
                          double seconds) {
      const auto begin = since.find(other.value());
      if (begin == since.end()) return false;
      now = std::max(now, begin->second + seconds);
      return true;
    };
    switch (step) {
      case PipelineStep::start_receive:
        received_.emplace(pass, now);
        return true;
      case PipelineStep::finish_receive:
        if (!wait(sent_, producer_of(pass, shape_), times_.message)) return false;
        arrived_.insert(pass);
        return true;
      case PipelineStep::compute:
        compute_pass(pass);
        return true;
      case PipelineStep::start_send:
        sent_.emplace(pass, now);
        return true;
      case PipelineStep::finish_send:
        return wait(received_, consumer_of(pass, shape_), 0);
    }
    return false;
  }

  /// Executes a pass. Checks that it is on the next microbatch and that the passes before it and
  /// its input are there.
  void compute_pass(const PlacedPass& pass) {
    const std::span<const PassKind> kinds = kinds_of(shape_);
    const auto kind = std::find(kinds.begin(), kinds.end(), pass.pass.kind);
    if (kind == kinds.end() || pass.pass.chunk >= shape_.virtual_stages ||
        pass.pass.microbatch >= shape_.microbatches)
      reject(pass, shape_, "is not a pass of this schedule");
    if (const Size next = number_done(pass); pass.pass.microbatch != next)
      reject(pass, shape_, fmt::format("runs before microbatch {}", next));
    if (kind != kinds.begin()) {
      PlacedPass earlier = pass;
      earlier.pass.kind = *(kind - 1);
      if (!is_done(earlier))
        reject(pass, shape_, fmt::format("begins before its {} pass", name_of(*(kind - 1))));
    }
    const auto before = producer_of(pass, shape_);
    if (before && !(before->stage == pass.stage ? is_done(*before) : arrived_.contains(pass)))
      reject(pass, shape_, "begins without its input");
    ++number_done(pass);
    const double begin = now_[pass.stage], seconds = seconds_of(pass.pass.kind, times_) /
                                                     static_cast<double>(shape_.virtual_stages);
    now_[pass.stage] = begin + seconds;
    busy_ += seconds;
    timeline_.makespan = std::max(timeline_.makespan, begin + seconds);
    timeline_.stages[pass.stage].push_back({pass.pass, begin, begin + seconds});
  }

  /// Returns the number of microbatches whose pass of this kind, chunk and stage is done.
  /// Microbatches come in order.
  Size& number_done(PlacedPass pass) {
    pass.pass.microbatch = 0;
    return done_[pass];
  }
  bool is_done(const PlacedPass& pass) { return pass.pass.microbatch < number_done(pass); }

  void check_complete() {
    for (Size stage = 0; stage < shape_.stages; ++stage)
      for (Size chunk = 0; chunk < shape_.virtual_stages; ++chunk)
        for (const PassKind kind : kinds_of(shape_))
          if (const Size next = number_done({stage, {kind, 0, chunk}}); next < shape_.microbatches)
            reject({stage, {kind, next, chunk}}, shape_, "is missing");
  }

  const PipelineShape& shape_;
  const PipelineTimes& times_;
  std::vector<double> now_;  ///< by stage, its clock
  Times received_, sent_;    ///< receives and sends started, with the time
  std::set<PlacedPass> arrived_;
  std::map<PlacedPass, Size> done_;  ///< by pass of microbatch 0, the number of microbatches done
  double busy_ = 0;                  ///< of all stages together
  PipelineTimeline timeline_;
};

}  // namespace

PipelineTimeline simulate_pipeline(const ActionLists& lists, const PipelineShape& shape,
                                   const PipelineTimes& times) {
  return Simulation(shape, times, lists.size()).run(lists);
}

double bubble_of(const PipelineTimeline& timeline, const PipelineShape& listed,
                 const PipelineShape& shape) {
  if (listed.microbatches == shape.microbatches) return timeline.bubble;
  // The stages wait as long, and each microbatch adds as much work to all of them.
  const double waits = timeline.bubble / (1 - timeline.bubble),  // per work
      share = static_cast<double>(listed.microbatches) / static_cast<double>(shape.microbatches);
  return waits * share / (1 + waits * share);
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
