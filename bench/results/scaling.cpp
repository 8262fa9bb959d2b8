// SPDX-License-Identifier: Apache-2.0
#include "results/summary.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// Returns the factors that define the work of a case, without those that distribute it. Cases with
/// equal work may be compared.
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

/// Returns ranks times threads; a rank has one thread unless the study varies them.
double cores_of(const Json& row) {
  return row.at("ranks").get<double>() * row.at("factors").value("distributed.threads", 1.0);
}

/// The smallest value is the baseline.
auto rank_as_baseline(const Json& row, const Json& wanted) {
  return std::tuple(row.at("ranks").get<Size>(), row.at("strategy") != wanted.at("strategy"),
                    row.at("microbatches").get<Size>(), cores_of(row));
}

const Json* find_baseline(const std::vector<Json>& rows, const Json& row, const Json& wanted,
                          bool weak) {
  const Json work = work_of(row, weak);
  const Json* best = nullptr;
  for (const Json& candidate : rows) {
    if (!is_measured(candidate.at("status").get<std::string>()) || work_of(candidate, weak) != work)
      continue;
    if (!wanted.at("ranks").is_null() && candidate.at("ranks") != wanted.at("ranks")) continue;
    if (best == nullptr || rank_as_baseline(candidate, wanted) < rank_as_baseline(*best, wanted))
      best = &candidate;
  }
  return best;
}

/// `ratio` is the time of a step of the baseline over that of the row.
void compare(Json& row, const Json& base, const Statistics& ratio, bool weak) {
  const double p = row.at("ranks"), p0 = base.at("ranks");
  const auto set = [&](const std::string& end, double value) {
    const double speedup = weak ? value * p / p0 : value;
    row["speedup" + end] = speedup;
    row["efficiency" + end] = speedup * cores_of(base) / cores_of(row);
  };
  row["baseline"] = base.at("id");
  row["baseline_ranks"] = base.at("ranks");
  row["baseline_step_seconds"] = base.at("step_seconds_median");
  set("", ratio.n > 0 ? ratio.median
                      : base.at("step_seconds_median").get<double>() /
                            row.at("step_seconds_median").get<double>());
  if (!ratio.ci95) return;
  set("_low", ratio.ci95->low);
  set("_high", ratio.ci95->high);
}

}  // namespace

void add_scaling(std::vector<Json>& rows, const Results& results) {
  const bool weak = results.study.at("scaling") == "weak";
  for (Json& row : rows) {
    row["scaling"] = results.study.at("scaling");
    if (!is_measured(row.at("status").get<std::string>())) continue;
    const Json* base = find_baseline(rows, row, results.study.at("baseline"), weak);
    if (base == nullptr) continue;
    const auto rounds = [&](const Json* of) {
      return rounds_of(results.cases[static_cast<std::size_t>(of - rows.data())]);
    };
    compare(row, *base, paired_ratio(rounds(&row), rounds(base)), weak);
  }
}

}  // namespace tessera::bench
