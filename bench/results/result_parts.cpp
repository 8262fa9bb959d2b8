// SPDX-License-Identifier: Apache-2.0
#include "results/result_parts.hpp"

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/mesh/mesh_layout.hpp>
#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/plan/pipeline/pipeline_timeline.hpp>
#include <tessera/predict/machine_file.hpp>

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

Json case_json(const Case& point) {
  const Config& config = point.config;
  Json axes = Json::array();
  for (const Axis& axis : point.mesh.axes())
    axes.push_back({{"name", axis.name}, {"size", axis.size}});
  const auto products = half_products(config);
  // The model of a skipped case may be invalid.
  const Json parameters =
      point.skip_reason ? Json() : Json(make_model(config.model).num_parameters());
  return {
      {"strategy", name_of(config.training.distributed.strategy)},
      {"mesh", axes},
      {"ranks", point.ranks()},
      {"nodes", nodes_json(point.topology, point.mesh)},
      {"global_batch", point.batch()},
      {"batch_per_rank", static_cast<double>(point.batch()) / static_cast<double>(point.ranks())},
      {"microbatches", config.training.microbatches},
      {"dtype", name_of(compute_type(config))},
      {"short_products", products ? Json(name_of(*products)) : Json()},
      {"matmul_precision", name_of(config.model.matmul_precision)},
      {"samples", config.data.samples},
      {"parameters", parameters}};
}

/// Returns null for one stage. `bubble` is that of the schedule if a backward pass takes twice as
/// long as a forward pass and messages take no time.
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
          {"live_microbatches", live}};
}

}  // namespace

CaseResult new_result(const Study& study, const Case& point) {
  CaseResult result;
  result.id = point.id;
  result.study = study.name;
  result.label = point.label;
  result.factors = point.factors;
  result.facts = case_json(point);
  result.config = config_as_json(point.config);
  return result;
}

StepTimes step_times(const Statistics& s, const MeasureRules& rules) {
  StepTimes times{s.median, s.mad, s.min, s.p95, s.max, {}, {}, s.n, s.outliers, rules.warm_up};
  if (s.ci95) {
    times.ci95_low = s.ci95->low;
    times.ci95_high = s.ci95->high;
  }
  return times;
}

LargestMemory largest_memory(const Plan& plan) {
  LargestMemory largest{0, plan.memory(0)};
  const AlikeRanks alike = ranks_alike(plan);
  for (const RankBoxes::Group& group : alike.groups) {
    const Size rank = alike.first_rank(group);
    const MemoryPlan memory = plan.memory(rank);
    if (memory.total() > largest.memory.total()) largest = {rank, memory};
  }
  return largest;
}

bool fits(Size bytes, const Limits& limits) {
  return !limits.memory_bytes || bytes <= *limits.memory_bytes;
}

bool add_plan(CaseResult& result, const Plan& plan, const Limits& limits) {
  const MemoryPlan memory = largest_memory(plan).memory;
  const Size bytes = memory.total();
  MemoryResult& planned = result.memory.emplace();
  planned.planned_bytes = bytes;
  for (const MemoryRow& row : memory_rows) planned.parts[row.name] = memory.*row.bytes;
  planned.limit_bytes = limits.memory_bytes;
  planned.predicted_oom = !fits(bytes, limits);
  result.pipeline = pipeline_json(plan);
  if (planned.predicted_oom)
    result.end(ExitCode::out_of_memory,
               fmt::format("needs {} per rank, but the limit is {}", human_bytes(bytes),
                           human_bytes(*limits.memory_bytes)));
  return !planned.predicted_oom;
}

ComputeResult flop_rates(const Plan& plan, double gemm_peak, std::optional<double> vendor_peak,
                         std::optional<double> seconds) {
  const auto ranks = static_cast<double>(plan.input.mesh.num_ranks());
  ComputeResult rates;
  rates.flops_per_step = plan.flops.total();
  rates.gemm_peak_flops_per_second = gemm_peak * ranks;
  if (vendor_peak) rates.vendor_peak_flops_per_second = *vendor_peak * ranks;
  if (!seconds) return rates;
  const double rate = rates.flops_per_step / *seconds;
  rates.flops_per_second = rate;
  rates.flops_per_second_per_rank = rate / ranks;
  if (vendor_peak) rates.vendor_mfu = rate / *rates.vendor_peak_flops_per_second;
  return rates;
}

Json machine_json(const Machine& machine) {
  return {{"machine", machine.name}, {"file", machine_as_toml(machine)}};
}

}  // namespace tessera::bench
