// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "measure/fits.hpp"
#include "measure/wire_model.hpp"
#include "results/summary.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

/// The one axis along which a case has several ranks: "" for a single rank, none for more axes.
std::optional<std::string> only_axis(const Json& result) {
  std::string only;
  for (const Json& axis : result.at("case").at("mesh")) {
    if (axis.at("size") == 1) continue;
    if (!only.empty()) return std::nullopt;
    only = axis.at("name");
  }
  return only;
}

/// Everything that is the same along a series: all factors but the mesh. What applies to several
/// ranks only is no reason to leave the one-rank case out.
Json series_of(const Json& result, bool one_rank) {
  Json key = result.at("factors");
  for (const char* varying : {"mesh", "ranks"}) key.erase(varying);
  if (!one_rank) return key;
  for (auto item = key.begin(); item != key.end();)
    item = item.key().starts_with("distributed.") ? key.erase(item) : std::next(item);
  return key;
}

struct Series {
  Json key;
  std::string axis;
  std::map<double, const Json*> by_ranks;
};

std::vector<Series> collect_series(const std::vector<const Json*>& ok) {
  std::vector<Series> all;
  for (const Json* result : ok) {
    const auto axis = only_axis(*result);
    if (!axis || axis->empty()) continue;
    const Json key = series_of(*result, false);
    auto found = std::find_if(all.begin(), all.end(),
                              [&](const Series& s) { return s.key == key && s.axis == *axis; });
    if (found == all.end()) found = all.insert(all.end(), {key, *axis, {}});
    found->by_ranks.try_emplace(result->at("factors").at("ranks"), result);
  }
  for (Series& series : all) {
    for (const Json* result : ok) {
      if (only_axis(*result) != "") continue;
      const Json key = series_of(*series.by_ranks.begin()->second, true);
      if (series_of(*result, true) == key) series.by_ranks.try_emplace(1, result);
    }
  }
  return all;
}

Json amdahl(const std::vector<const Json*>& ok) {
  Json fits = Json::array();
  for (const Series& series : collect_series(ok)) {
    std::vector<double> ranks, seconds;
    Json ids = Json::array();
    for (const auto& [p, result] : series.by_ranks) {
      ranks.push_back(p);
      seconds.push_back(result->at("step_seconds").at("median"));
      ids.push_back(result->at("id"));
    }
    const auto fit = fit_amdahl(ranks, seconds);
    if (!fit) continue;
    Json entry = series.key;  // the factors that all its cases share
    entry.update({{"axis", series.axis},
                  {"cases", ids},
                  {"ranks", ranks},
                  {"step_seconds", seconds},
                  {"fitted_seconds", fit->line.fitted},
                  {"residual_seconds", fit->line.residuals},
                  {"serial_fraction", fit->serial_fraction},
                  {"one_rank_seconds", fit->one_rank_seconds},
                  {"r_squared", or_null(fit->line.r_squared)}});
    fits.push_back(std::move(entry));
  }
  return fits;
}

std::optional<Operation> operation_named(const std::string& name) {
  const auto found = std::find(operation_names.begin(), operation_names.end(), name);
  if (found == operation_names.end()) return std::nullopt;
  return static_cast<Operation>(found - operation_names.begin());
}

struct Points {
  std::vector<double> rounds, bytes, seconds;
  Json documents = Json::array();
};

void add_point(std::map<std::string, Points>& axes, const Json& result, const Json& row) {
  const auto operation = operation_named(row.at("operation"));
  if (!operation || row.at("seconds_per_step").is_null()) return;
  const Size n = row.at("group_size");
  const double calls = row.at("calls_per_step"), payload = row.at("payload_bytes_per_step");
  Points& points = axes[row.at("axis")];
  points.rounds.push_back(calls * rounds(*operation, n));
  points.bytes.push_back(payload * wire_factor(*operation, n));
  points.seconds.push_back(row.at("seconds_per_step"));
  points.documents.push_back({{"case", result.at("id")},
                              {"operation", row.at("operation")},
                              {"group_size", n},
                              {"rounds_per_step", points.rounds.back()},
                              {"wire_bytes_per_step", points.bytes.back()},
                              {"seconds_per_step", points.seconds.back()}});
}

Json alpha_beta(const std::vector<const Json*>& ok) {
  std::map<std::string, Points> axes;
  for (const Json* result : ok)
    for (const Json& row : result->at("traffic").at("rows")) add_point(axes, *result, row);
  Json fits = Json::array();
  for (auto& [axis, points] : axes) {
    const auto fit = fit_alpha_beta(points.rounds, points.bytes, points.seconds);
    if (!fit) continue;
    for (std::size_t i = 0; i < points.seconds.size(); ++i) {
      points.documents[i]["fitted_seconds"] = fit->line.fitted[i];
      points.documents[i]["residual_seconds"] = fit->line.residuals[i];
    }
    fits.push_back({{"axis", axis},
                    {"alpha_seconds", fit->alpha},
                    {"beta_seconds_per_byte", fit->beta},
                    {"r_squared", or_null(fit->line.r_squared)},
                    {"points", points.documents}});
  }
  return fits;
}

}  // namespace

Json study_fits(const Results& results) {
  std::vector<const Json*> ok;
  for (const Json& result : results.cases)
    if (result.at("status") == "ok") ok.push_back(&result);
  const bool strong = results.study.at("scaling") == "strong";
  return {{"amdahl", strong ? amdahl(ok) : Json::array()}, {"alpha_beta", alpha_beta(ok)}};
}

}  // namespace tessera::bench
