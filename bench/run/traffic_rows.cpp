// SPDX-License-Identifier: Apache-2.0
#include "run/traffic_rows.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <tessera/comm/share_json.hpp>
#include <tessera/predict/wire_model.hpp>

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// `both`: planned and measured rows of a rank.
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

/// Merges the planned and the measured rows of a rank.
Json rows_of_rank(const Json& both, const MeshShape& mesh) {
  std::map<std::pair<std::string, std::string>, Json> rows;
  for (const std::size_t which : {0, 1}) {
    const std::string prefix = which == 0 ? "planned_" : "measured_";
    for (const Json& row : both[which]) {
      const std::string axis = row.at("axis"), operation = row.at("operation");
      Json& out =
          rows.try_emplace({axis, operation}, empty_row(mesh, axis, operation)).first->second;
      for (const std::string key : {"calls", "payload_bytes"}) out[prefix + key] = row.at(key);
    }
  }
  Json list = Json::array();
  for (auto& [key, row] : rows) list.push_back(std::move(row));
  return list;
}

}  // namespace

Json verified_traffic(const Communicator& ranks, const MeshShape& mesh,
                      const Verification& verification) {
  Json traffic = conclude_json(
      ranks, {verification.planned_traffic, verification.measured_traffic},
      [&](const std::vector<Json>& all) -> Json {
        const bool as_planned = std::all_of(all.begin(), all.end(),
                                            [](const Json& both) { return both[0] == both[1]; });
        const auto most = std::max_element(
            all.begin(), all.end(),
            [](const Json& a, const Json& b) { return planned_bytes(a) < planned_bytes(b); });
        return {{"as_planned", as_planned}, {"rows", rows_of_rank(*most, mesh)}};
      });
  traffic["steps"] = verification.losses.steps.size();
  traffic["epochs"] = verification.epochs;
  return traffic;
}

Json planned_traffic(const Plan& plan) {
  Json list = Json::array();
  for (const LedgerRow& planned : step_traffic(plan)) {
    Json& row = list.emplace_back(
        empty_row(plan.input.mesh, planned.axis, std::string(name_of(planned.operation))));
    row["planned_calls"] = planned.calls;
    row["planned_payload_bytes"] = planned.payload_bytes;
    row["measured_calls"] = row["measured_payload_bytes"] = nullptr;
  }
  return {{"steps", 1}, {"epochs", 0}, {"as_planned", nullptr}, {"rows", list}};
}

void add_call_times(Json& traffic, const Plan& plan, const Breakdown& breakdown) {
  for (Json& row : traffic.at("rows"))
    for (const auto& [axis, operation, calls, bytes] : step_traffic(plan)) {
      if (row.at("axis") != axis || row.at("operation") != name_of(operation)) continue;
      const Size n = row.at("group_size");
      const double factor = wire_factor(operation, n);
      row["calls_per_step"] = calls;
      row["payload_bytes_per_step"] = bytes;
      row["rounds_per_step"] = static_cast<double>(calls) * rounds(operation, n);
      row["wire_bytes_per_step"] = static_cast<double>(bytes) * factor;
      for (const CallTime& time : breakdown.calls) {
        if (time.axis != axis || time.operation != operation) continue;
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
