// SPDX-License-Identifier: Apache-2.0
#include "results/result_parts.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/text.hpp>
#include <tessera/comm/share_json.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/plan/pipeline/pipeline_timeline.hpp>
#include <tessera/predict/machine_file.hpp>
#include <tessera/predict/wire_model.hpp>
#include <tessera/tensor/mesh_layout.hpp>
#include <tessera/trace/waits.hpp>

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
  const PipelineShape listed = listed_passes(plan.input);
  const PassLists passes = order_passes(listed);
  Json live = Json::array();
  for (const std::vector<StagePass>& stage : passes) live.push_back(peak_live(stage, shape));
  return {
      {"schedule", schedule_name(shape)},
      {"stages", shape.stages},
      {"virtual_stages", shape.virtual_stages},
      {"microbatches", shape.microbatches},
      {"bubble", bubble_of(simulate_pipeline(add_messages(passes, listed), listed), listed, shape)},
      {"live_microbatches", live}};
}

TrafficRow row_for(const MeshShape& mesh, const LedgerRow& row) {
  TrafficRow made;
  made.axis = row.axis;
  made.operation = name_of(row.operation);
  made.group_size = mesh.group_size(axes_of_group(mesh, row.axis));
  return made;
}

/// Merges the planned and the measured rows of this rank.
std::vector<TrafficRow> rows_of_rank(const MeshShape& mesh, const Verification& verification) {
  std::map<std::pair<std::string, std::string_view>, TrafficRow> rows;
  const auto row_of = [&](const LedgerRow& row) -> TrafficRow& {
    TrafficRow& found =
        rows.try_emplace({row.axis, name_of(row.operation)}, row_for(mesh, row)).first->second;
    if (!found.measured_calls) found.measured_calls = found.measured_payload_bytes = 0;
    return found;
  };
  for (const LedgerRow& planned : verification.planned_traffic) {
    TrafficRow& row = row_of(planned);
    row.planned_calls = planned.calls;
    row.planned_payload_bytes = planned.payload_bytes;
  }
  for (const LedgerRow& measured : verification.measured_traffic) {
    TrafficRow& row = row_of(measured);
    row.measured_calls = measured.calls;
    row.measured_payload_bytes = measured.payload_bytes;
  }
  std::vector<TrafficRow> list;
  for (auto& [key, row] : rows) list.push_back(std::move(row));
  return list;
}

Size planned_bytes(const Traffic& traffic) {
  Size bytes = 0;
  for (const TrafficRow& row : traffic.rows) bytes += row.planned_payload_bytes;
  return bytes;
}

}  // namespace

const char* status_for(ExitCode code) {
  switch (code) {
    case ExitCode::wrong_result:
      return "invalid";
    case ExitCode::out_of_memory:
      return "oom";
    case ExitCode::timeout:
      return "timeout";
    case ExitCode::skipped:
      return "skipped";
    default:
      return "failed";
  }
}

void CaseResult::end(ExitCode code, const std::string& why) {
  status = status_for(code);
  reason = one_line(why);
  exit_code = static_cast<int>(code);
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
  rates.set_step(*seconds, plan.input.mesh.num_ranks());
  return rates;
}

void ComputeResult::set_step(double seconds, Size ranks) {
  const double rate = flops_per_step / seconds;
  flops_per_second = rate;
  flops_per_second_per_rank = rate / static_cast<double>(ranks);
  if (vendor_peak_flops_per_second) vendor_mfu = rate / *vendor_peak_flops_per_second;
}

Prediction prediction_of(const SimulatedStep& step, const std::string& machine,
                         bool oversubscribed) {
  return {machine,           step.step_seconds, step.products.work,
          step.kernels.work, step.update.work,  step.communication(),
          step.waiting(),    step.launches(),   oversubscribed};
}

Json machine_json(const Machine& machine) {
  return {{"machine", machine.name}, {"file", machine_as_toml(machine)}};
}

Traffic verified_traffic(const Communicator& ranks, const MeshShape& mesh,
                         const Verification& verification) {
  const Traffic mine{static_cast<Size>(verification.losses.steps.size()), verification.epochs,
                     verification.planned_traffic == verification.measured_traffic,
                     rows_of_rank(mesh, verification)};
  return conclude_json(ranks, mine, [](const std::vector<Json>& all) -> Json {
    Traffic most = all.front().get<Traffic>();
    bool as_planned = true;
    for (const Json& one : all) {
      Traffic traffic = one.get<Traffic>();
      as_planned &= *traffic.as_planned;
      if (planned_bytes(traffic) > planned_bytes(most)) most = std::move(traffic);
    }
    most.as_planned = as_planned;
    return most;
  });
}

Traffic planned_traffic(const Plan& plan) {
  Traffic traffic;
  traffic.steps = 1;
  for (const LedgerRow& planned : step_traffic(plan)) {
    TrafficRow& row = traffic.rows.emplace_back(row_for(plan.input.mesh, planned));
    row.planned_calls = planned.calls;
    row.planned_payload_bytes = planned.payload_bytes;
  }
  return traffic;
}

void add_call_times(Traffic& traffic, const Plan& plan, const Breakdown& breakdown) {
  for (TrafficRow& row : traffic.rows)
    for (const auto& [axis, operation, calls, bytes] : step_traffic(plan)) {
      if (row.axis != axis || row.operation != name_of(operation)) continue;
      const double factor = wire_factor(operation, row.group_size);
      row.calls_per_step = calls;
      row.payload_bytes_per_step = bytes;
      row.rounds_per_step = static_cast<double>(calls) * rounds(operation, row.group_size);
      row.wire_bytes_per_step = static_cast<double>(bytes) * factor;
      for (const CallTime& time : breakdown.calls) {
        if (time.axis != axis || time.operation != operation) continue;
        row.seconds_per_step = time.seconds;
        row.wait_seconds_per_step = time.waiting;
        if (time.seconds <= 0) continue;
        const double bandwidth = static_cast<double>(bytes) / time.seconds;
        row.algorithm_bytes_per_second = bandwidth;
        row.bus_bytes_per_second = bandwidth * factor;
      }
    }
}

}  // namespace tessera::bench
