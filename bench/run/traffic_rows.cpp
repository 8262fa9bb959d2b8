// SPDX-License-Identifier: Apache-2.0
#include "run/traffic_rows.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <tessera/comm/share_json.hpp>
#include <tessera/predict/wire_model.hpp>
#include <tessera/trace/waits.hpp>

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

TrafficRow row_for(const MeshShape& mesh, const LedgerRow& row) {
  TrafficRow made;
  made.axis = row.axis;
  made.operation = name_of(row.operation);
  made.group_size = static_cast<Size>(group_of(mesh, row.axis, 0).size());
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
