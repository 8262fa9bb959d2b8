// SPDX-License-Identifier: Apache-2.0
#include "run/traffic_rows.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <tessera/comm/share_json.hpp>
#include <tessera/plan/wire_model.hpp>

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// What a rank planned and measured, by axis and operation: {planned, measured}.
Json rows_of(const Verification& verification) {
  Json both = Json::array();
  for (const auto* rows : {&verification.planned_traffic, &verification.measured_traffic}) {
    Json list = Json::array();
    for (const LedgerRow& row : *rows)
      list.push_back({{"axis", row.axis},
                      {"operation", name_of(row.operation)},
                      {"calls", row.calls},
                      {"payload_bytes", row.payload_bytes}});
    both.push_back(std::move(list));
  }
  return both;
}

Size planned_bytes(const Json& both) {
  Size bytes = 0;
  for (const Json& row : both[0]) bytes += row.at("payload_bytes").get<Size>();
  return bytes;
}

Json empty_row(const MeshShape& mesh, const std::string& axis, const std::string& operation) {
  Json row{{"axis", axis},
           {"operation", operation},
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
  const std::vector<Json> all = gather_json(ranks, rows_of(verification));
  const Json& most = *std::max_element(all.begin(), all.end(), [](const Json& a, const Json& b) {
    return planned_bytes(a) < planned_bytes(b);
  });
  std::map<std::pair<std::string, std::string>, Json> rows;
  for (const std::size_t which : {0, 1}) {
    const std::string prefix = which == 0 ? "planned_" : "measured_";
    for (const Json& row : most[which]) {
      const std::string axis = row.at("axis"), operation = row.at("operation");
      Json& out =
          rows.try_emplace({axis, operation}, empty_row(mesh, axis, operation)).first->second;
      for (const std::string key : {"calls", "payload_bytes"}) out[prefix + key] = row.at(key);
    }
  }
  Json list = Json::array();
  for (auto& [key, row] : rows) list.push_back(std::move(row));
  return {{"steps", verification.losses.steps.size()},
          {"epochs", verification.epochs},
          {"as_planned", std::all_of(all.begin(), all.end(),
                                     [](const Json& both) { return both[0] == both[1]; })},
          {"rows", list}};
}

Json planned_traffic(const Plan& plan) {
  std::map<std::pair<std::string, std::string>, Json> rows;
  for (const CollectivePlan& planned : plan.collectives(0)) {
    if (planned.cadence != Cadence::step) continue;
    const std::string operation(name_of(planned.operation));
    Json& row = rows.try_emplace({planned.axis, operation},
                                 empty_row(plan.input.mesh, planned.axis, operation))
                    .first->second;
    row["planned_calls"] = row["planned_calls"].get<Size>() + planned.calls;
    row["planned_payload_bytes"] = row["planned_payload_bytes"].get<Size>() + planned.payload_bytes;
    row["measured_calls"] = row["measured_payload_bytes"] = nullptr;
  }
  Json list = Json::array();
  for (auto& [key, row] : rows) list.push_back(std::move(row));
  return {{"steps", 1}, {"epochs", 0}, {"as_planned", nullptr}, {"rows", list}};
}

void add_call_times(Json& traffic, const Plan& plan, const Breakdown& breakdown) {
  for (Json& row : traffic.at("rows")) {
    Size calls = 0, bytes = 0;
    Operation operation = Operation::barrier;
    for (const CollectivePlan& planned : plan.collectives(0)) {
      if (planned.cadence != Cadence::step || row.at("axis") != planned.axis ||
          row.at("operation") != name_of(planned.operation))
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
      if (row.at("axis") != time.axis || time.operation != operation) continue;
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
