// SPDX-License-Identifier: Apache-2.0
#include "results/documents.hpp"

#include <cmath>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/mesh/mesh_layout.hpp>
#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/plan/layout/strategy.hpp>
#include <tessera/plan/pipeline/pipeline_timeline.hpp>
#include <tessera/predict/machine_file.hpp>

#include "results/json_or_null.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

Json axes_json(const MeshShape& mesh) {
  Json axes = Json::array();
  for (const Axis& axis : mesh.axes()) axes.push_back({{"name", axis.name}, {"size", axis.size}});
  return axes;
}

/// Returns the implementation of products with 16-bit or TF32 operands, or null if there are none.
Json short_products_of(const Config& config) {
  const auto products = half_products(compute_type(config), config.model.matmul_precision);
  return products ? Json(name_of(*products)) : Json();
}

/// Returns null for a skipped case, whose model may be invalid.
Json parameters_of(const Case& point) {
  return point.skip_reason ? Json() : Json(make_model(point.config.model).num_parameters());
}

Json case_json(const Case& point) {
  return {
      {"strategy", name_of(point.config.training.distributed.strategy)},
      {"mesh", axes_json(point.mesh)},
      {"ranks", point.ranks()},
      {"nodes", nodes_json(point.topology, point.mesh)},
      {"global_batch", point.batch()},
      {"batch_per_rank", static_cast<double>(point.batch()) / static_cast<double>(point.ranks())},
      {"microbatches", point.config.training.microbatches},
      {"dtype", name_of(compute_type(point.config))},
      {"short_products", short_products_of(point.config)},
      {"matmul_precision", name_of(point.config.model.matmul_precision)},
      {"samples", point.config.data.samples},
      {"parameters", parameters_of(point)}};
}

}  // namespace

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json numbers_json(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(finite(value));
  return list;
}

Json study_document(const Study& study, const std::vector<Case>& cases) {
  Json list = Json::array();
  for (const Case& point : cases)
    list.push_back({{"id", point.id},
                    {"label", point.label},
                    {"factors", point.factors},
                    {"skip_reason", json_or_null(point.skip_reason)}});
  return {
      {"schema_version", 1},
      {"name", study.name},
      {"description", study.description},
      {"file", study.file},
      {"small", study.small},
      {"scaling", name_of(study.scaling)},
      {"baseline",
       {{"ranks", json_or_null(study.baseline.ranks)}, {"strategy", study.baseline.strategy}}},
      {"measure", study.measure},
      {"limits",
       {{"case_seconds", study.limits.case_seconds},
        {"memory_bytes", json_or_null(study.limits.memory_bytes)},
        {"vendor_peak_flops_per_second", json_or_null(study.limits.vendor_peak_flops_per_second)}}},
      {"verify",
       {{"enabled", study.verify.enabled},
        {"tolerance", study.verify.tolerance},
        {"steps", json_or_null(study.verify.steps)},
        {"ranks", study.verify.ranks}}},
      {"strategies", names_of<Strategy>},
      {"cases", list}};
}

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

Json statistics_json(const Statistics& s, const MeasureRules& rules) {
  return {{"median", s.median},
          {"mad", s.mad},
          {"min", s.min},
          {"p95", s.p95},
          {"max", s.max},
          {"ci95_low", s.ci95 ? Json(s.ci95->low) : Json()},
          {"ci95_high", s.ci95 ? Json(s.ci95->high) : Json()},
          {"n", s.n},
          {"outliers", s.outliers},
          {"warm_up", rules.warm_up}};
}

Json compute_json(const Plan& plan, double gemm_peak, std::optional<double> vendor_peak,
                  std::optional<double> seconds) {
  const auto ranks = static_cast<double>(plan.input.mesh.num_ranks());
  const auto flops = plan.flops.total();
  const double peak = gemm_peak * ranks;
  const Json rate = seconds ? Json(flops / *seconds) : Json();
  return {{"flops_per_step", flops},
          {"flops_per_second", rate},
          {"flops_per_second_per_rank", seconds ? Json(flops / *seconds / ranks) : Json()},
          {"gemm_peak_flops_per_second", peak},
          {"mfu", seconds ? Json(flops / *seconds / peak) : Json()},
          {"vendor_peak_flops_per_second", vendor_peak ? Json(*vendor_peak * ranks) : Json()},
          {"vendor_mfu",
           vendor_peak && seconds ? Json(flops / *seconds / (*vendor_peak * ranks)) : Json()}};
}

Json machine_json(const Machine& machine) {
  return {{"machine", machine.name}, {"file", machine_as_toml(machine)}};
}

Json checkpoint_json(const CheckpointConfig& config, const CheckpointTimes& times) {
  const auto bytes = static_cast<double>(times.bytes);
  return {{"directory", config.directory},
          {"async", config.async},
          {"checkpoints", times.checkpoints},
          {"bytes", times.bytes},
          {"write_seconds", times.write_seconds},
          {"write_bytes_per_second", bytes / times.write_seconds},
          {"exposed_seconds", times.exposed_seconds},
          {"steps_while_writing", times.steps},
          {"step_seconds_while_writing", finite(times.step_seconds)},
          {"read_seconds", times.read_seconds},
          {"read_bytes_per_second", bytes / times.read_seconds}};
}

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

Json memory_json(const MemoryPlan& memory, const Limits& limits) {
  const Size total = memory.total();
  Json parts;
  for (const MemoryRow& row : memory_rows) parts[row.name] = memory.*row.bytes;
  return {{"as_planned", nullptr},
          {"planned_bytes", total},
          {"measured_bytes", nullptr},
          {"parts", parts},
          {"limit_bytes", json_or_null(limits.memory_bytes)},
          {"predicted_oom", !fits(total, limits)}};
}

bool fits(Size bytes, const Limits& limits) {
  return !limits.memory_bytes || bytes <= *limits.memory_bytes;
}

std::string too_large(Size bytes, const Limits& limits) {
  return fmt::format("needs {} per rank, but the limit is {}", human_bytes(bytes),
                     human_bytes(*limits.memory_bytes));
}

}  // namespace tessera::bench
