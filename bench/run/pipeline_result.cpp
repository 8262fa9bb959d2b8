// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline_result.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <tessera/plan/pipeline/pipeline_timeline.hpp>

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// The regions of the passes of the first step, as many as the stage has.
std::vector<TracedRegion> first_passes(const RankTrace& trace, std::size_t number) {
  std::vector<TracedRegion> passes;
  for (const TracedRegion& region : trace.regions)
    if (passes.size() < number && region.name.starts_with(pass_prefix)) passes.push_back(region);
  return passes;
}

/// Seconds of a microbatch on one stage, the mean over what was measured, all its chunks together.
PipelineTimes mean_times(const Plan& plan, const std::vector<std::vector<TracedRegion>>& measured) {
  std::array<double, names_of<PassKind>.size()> seconds{}, number{};
  for (std::size_t s = 0; s < measured.size(); ++s)
    for (std::size_t i = 0; i < measured[s].size(); ++i) {
      const auto kind = static_cast<std::size_t>(plan.stages[s].passes[i].pass.kind);
      seconds[kind] += measured[s][i].seconds;
      number[kind] += 1;
    }
  const auto mean = [&](PassKind of) {
    const auto kind = static_cast<std::size_t>(of);
    const auto chunks = static_cast<double>(plan.input.pipeline().virtual_stages);
    return number[kind] > 0 ? chunks * seconds[kind] / number[kind] : 0;
  };
  return {mean(PassKind::forward), mean(PassKind::backward) + mean(PassKind::input_gradients),
          mean(PassKind::weight_gradients), 0};
}

/// Of each pass; 0 for those that are not in the trace.
std::vector<std::vector<double>> seconds_of(
    const PassLists& passes, const std::vector<std::vector<TracedRegion>>& measured) {
  std::vector<std::vector<double>> seconds;
  for (std::size_t s = 0; s < passes.size(); ++s) {
    seconds.emplace_back(passes[s].size());
    for (std::size_t i = 0; i < measured[s].size(); ++i) seconds[s][i] = measured[s][i].seconds;
  }
  return seconds;
}

/// Part of the time from the first pass to the end of the last in which a stage is in none.
double bubble_of(const std::vector<std::vector<TracedRegion>>& measured, double begin) {
  double busy = 0, end = begin;
  for (const std::vector<TracedRegion>& stage : measured)
    for (const TracedRegion& pass : stage) {
      busy += pass.seconds;
      end = std::max(end, pass.begin + pass.seconds);
    }
  return 1 - busy / ((end - begin) * static_cast<double>(measured.size()));
}

}  // namespace

Json pipeline_json(const Plan& plan) {
  const PipelineShape shape = plan.input.pipeline();
  if (shape.stages == 1) return nullptr;
  const PassLists passes = order_passes(shape);
  Json live = Json::array();
  for (const std::vector<StagePass>& stage : passes)
    live.push_back(peak_live(stage, shape.schedule));
  return {{"schedule", name_of(shape.schedule)},
          {"stages", shape.stages},
          {"virtual_stages", shape.virtual_stages},
          {"microbatches", shape.microbatches},
          {"bubble", time_passes(passes, shape, {}).bubble},
          {"live_microbatches", live},
          {"timeline", nullptr}};
}

Json timeline_json(const Plan& plan, const std::vector<RankTrace>& traces) {
  const PipelineShape shape = plan.input.pipeline();
  std::vector<std::vector<TracedRegion>> measured;
  double begin = std::numeric_limits<double>::max();
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const auto rank = static_cast<std::size_t>(plan.first_rank(static_cast<Size>(s)));
    measured.push_back(first_passes(traces[rank], plan.stages[s].passes.size()));
    if (!measured.back().empty()) begin = std::min(begin, measured.back().front().begin);
  }
  Json shown = Json::array();
  for (const std::vector<TracedRegion>& stage : measured) {
    Json& row = shown.emplace_back(Json::array());
    for (const TracedRegion& pass : stage)
      row.push_back({pass.name.substr(pass_prefix.size()), pass.begin - begin,
                     pass.begin - begin + pass.seconds});
  }
  const PassLists passes = order_passes(shape);
  Json ideal = Json::array();
  for (const auto& stage : time_passes(passes, shape, mean_times(plan, measured)).stages) {
    Json& row = ideal.emplace_back(Json::array());
    for (const TimedPass& pass : stage)
      row.push_back({short_name(pass.pass, shape), pass.begin, pass.end});
  }
  return {{"measured", shown},
          {"ideal", ideal},
          {"measured_bubble", bubble_of(measured, begin)},
          {"replayed_bubble", replay_passes(passes, shape, seconds_of(passes, measured)).bubble}};
}

}  // namespace tessera::bench
