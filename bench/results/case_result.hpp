// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "measure/rounds.hpp"
#include "results/stored_document.hpp"

namespace tessera::bench {

/// The result of a case: cases/<id>/result.json (bench/RESULTS.md). The keys of the file have the
/// names of the members. Empty texts, empty lists and missing values are null in the file. Parts
/// that only the report reads are JSON.
struct CaseResult {
  std::string id, study, label;
  nlohmann::json factors = nlohmann::json::object();
  nlohmann::json facts;  ///< "case" in the file
  nlohmann::json config = nlohmann::json::object();

  std::string status = "pending";
  std::string reason;
  std::optional<int> exit_code;
  Size attempt = 0;              ///< counted from 1
  std::optional<Size> launches;  ///< launches that finished measuring it
  std::string launch;            ///< the latest launch
  std::string simulated;         ///< the machine of a simulated result
  std::string started, finished;
  std::optional<double> wall_seconds;

  nlohmann::json loss, breakdown, traffic, memory, pipeline, compute;
  nlohmann::json prediction, explanation, checkpoint;
  std::vector<Round> rounds;
  nlohmann::json step_seconds;
  std::optional<double> samples_per_second;

  bool is_measured() const;
  double median_seconds() const { return step_seconds.at("median"); }
  bool is_predicted_oom() const {
    return memory.is_object() && value_or(memory, "predicted_oom", false);
  }
};
void to_json(nlohmann::json& json, const CaseResult& result);

/// Returns true for "ok" and for "unverified", which has a speed but no reference.
bool is_measured(std::string_view status);

/// Reads the result of the case `id`. Throws Error (usage) with file and key for a value that
/// readers cannot use.
CaseResult read_case_result(const StoredDocument& document, const std::string& id);

}  // namespace tessera::bench
