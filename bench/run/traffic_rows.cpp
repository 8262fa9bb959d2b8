// SPDX-License-Identifier: Apache-2.0
#include "run/traffic_rows.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <tessera/comm/share_json.hpp>

#include "measure/wire_model.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

Json rows_json(const std::vector<LedgerRow>& rows) {
  Json list = Json::array();
  for (const LedgerRow& row : rows)
    list.push_back({row.axis, static_cast<int>(row.operation), row.calls, row.payload_bytes});
  return list;
}

Size bytes_of(const Json& rows) {
  Size bytes = 0;
  for (const Json& row : rows) bytes += row[3].get<Size>();
  return bytes;
}

Json empty_row(const MeshShape& mesh, const std::string& axis, Operation operation) {
  Json row{{"axis", axis},
           {"operation", name_of(operation)},
           {"group_size", group_of(mesh, axis, 0).size()},
           {"planned_calls", 0},
           {"measured_calls", 0},
           {"planned_payload_bytes", 0},
           {"measured_payload_bytes", 0}};
  for (const char* key : {"calls_per_step", "payload_bytes_per_step", "rounds_per_step",
                          "wire_bytes_per_step", "seconds_per_step", "wait_seconds_per_step",
                          "algorithm_bytes_per_second", "bus_bytes_per_second"})
    row[key] = nullptr;
  return row;
}

}  // namespace

Json verified_traffic(const Communicator& ranks, const MeshShape& mesh,
                      const Verification& verification) {
  const std::vector<Json> all = gather_json(
      ranks, {rows_json(verification.planned_traffic), rows_json(verification.measured_traffic)});
  bool as_planned = true;
  for (const Json& rank : all) as_planned &= rank[0] == rank[1];
  const Json& most = *std::max_element(all.begin(), all.end(), [](const Json& a, const Json& b) {
    return bytes_of(a[0]) < bytes_of(b[0]);
  });
  std::map<std::pair<std::string, int>, Json> rows;
  for (std::size_t which : {0, 1}) {
    const std::string prefix = which == 0 ? "planned_" : "measured_";
    for (const Json& row : most[which]) {
      const std::string axis = row[0];
      const int operation = row[1];
      Json& out = rows.try_emplace({axis, operation},
                                   empty_row(mesh, axis, static_cast<Operation>(operation)))
                      .first->second;
      out[prefix + "calls"] = row[2];
      out[prefix + "payload_bytes"] = row[3];
    }
  }
  Json list = Json::array();
  for (auto& [key, row] : rows) list.push_back(std::move(row));
  return {{"steps", verification.losses.steps.size()},
          {"epochs", verification.epochs},
          {"as_planned", as_planned},
          {"rows", list}};
}

void add_call_times(Json& traffic, const Plan& plan, const Breakdown& breakdown) {
  for (Json& row : traffic.at("rows")) {
    Size calls = 0, bytes = 0;
    Operation operation = Operation::barrier;
    for (const CollectivePlan& planned : plan.collectives(0)) {
      if (planned.cadence != Cadence::step || planned.axis != row.at("axis") ||
          name_of(planned.operation) != row.at("operation"))
        continue;
      operation = planned.operation;
      calls += planned.calls;
      bytes += planned.payload_bytes;
    }
    if (calls == 0) continue;
    const Size n = row.at("group_size");
    const double factor = wire_factor(operation, n);
    row["calls_per_step"] = calls;
    row["payload_bytes_per_step"] = bytes;
    row["rounds_per_step"] = static_cast<double>(calls) * rounds(operation, n);
    row["wire_bytes_per_step"] = static_cast<double>(bytes) * factor;
    for (const CallTime& time : breakdown.calls) {
      if (time.axis != row.at("axis") || time.operation != operation) continue;
      row["seconds_per_step"] = time.seconds;
      row["wait_seconds_per_step"] = time.waiting;
      if (time.seconds <= 0) continue;
      const double bandwidth = static_cast<double>(bytes) / time.seconds;
      row["algorithm_bytes_per_second"] = bandwidth;
      row["bus_bytes_per_second"] = bandwidth * factor;
    }
  }
}

}  // namespace tessera::bench
