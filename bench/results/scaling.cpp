// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "results/summary.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// The work of a case, without how ranks share it: equal for cases that may be compared.
Json work_of(const Json& row, bool weak) {
  Json work = Json::object();
  for (const auto& [key, value] : row.at("factors").items()) {
    const bool is_configuration = key.find('.') != std::string::npos;
    const bool is_how = !is_configuration || key.starts_with("distributed.");
    if (!is_how || key == "distributed.mixed_precision") work[key] = value;
  }
  work["batch"] = weak ? row.at("batch_per_rank") : row.at("global_batch");
  return work;
}

/// Smaller is the better baseline.
auto rank_as_baseline(const Json& row, const Json& wanted) {
  return std::tuple(row.at("ranks").get<Size>(), row.at("strategy") != wanted.at("strategy"),
                    row.at("microbatches").get<Size>());
}

const Json* find_baseline(const std::vector<Json>& rows, const Json& row, const Json& wanted,
                          bool weak) {
  const Json work = work_of(row, weak);
  const Json* best = nullptr;
  for (const Json& candidate : rows) {
    if (candidate.at("status") != "ok" || work_of(candidate, weak) != work) continue;
    if (!wanted.at("ranks").is_null() && candidate.at("ranks") != wanted.at("ranks")) continue;
    if (best == nullptr || rank_as_baseline(candidate, wanted) < rank_as_baseline(*best, wanted))
      best = &candidate;
  }
  return best;
}

void compare(Json& row, const Json& base, bool weak) {
  const double p = row.at("ranks"), p0 = base.at("ranks");
  const auto set = [&](const char* suffix, const char* of_base, const char* of_row) {
    const std::string end = suffix;
    if (base.at(of_base).is_null() || row.at(of_row).is_null()) return;
    const double ratio = base.at(of_base).get<double>() / row.at(of_row).get<double>();
    row["efficiency" + end] = weak ? ratio : ratio * p0 / p;
    row["speedup" + end] = weak ? ratio * p / p0 : ratio;
  };
  row["baseline"] = base.at("id");
  row["baseline_ranks"] = base.at("ranks");
  row["baseline_step_seconds"] = base.at("step_seconds_median");
  set("", "step_seconds_median", "step_seconds_median");
  set("_low", "step_seconds_ci95_low", "step_seconds_ci95_high");
  set("_high", "step_seconds_ci95_high", "step_seconds_ci95_low");
}

}  // namespace

void add_scaling(std::vector<Json>& rows, const Json& study) {
  const bool weak = study.at("scaling") == "weak";
  for (Json& row : rows) {
    row["scaling"] = study.at("scaling");
    if (row.at("status") != "ok") continue;
    if (const Json* base = find_baseline(rows, row, study.at("baseline"), weak))
      compare(row, *base, weak);
  }
}

}  // namespace tessera::bench
