// SPDX-License-Identifier: Apache-2.0
#include "results/summary.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

/// Returns the factors that define the work of a case, without those that distribute it. Cases with
/// equal work may be compared.
Json work_of(const SummaryRow& row, bool weak) {
  Json work = Json::object();
  for (const auto& [key, value] : row.result.factors.items()) {
    const bool is_configuration = key.find('.') != std::string::npos;
    const bool is_how = !is_configuration || key.starts_with("distributed.");
    if (!is_how || key == "distributed.mixed_precision") work[key] = value;
  }
  work["batch"] = weak ? row.batch_per_rank : static_cast<double>(row.result.batch());
  return work;
}

/// Returns ranks times threads; a rank has one thread unless the study varies them.
double cores_of(const CaseResult& result) {
  return static_cast<double>(result.ranks()) * result.factors.value("distributed.threads", 1.0);
}

/// The smallest value is the baseline.
auto rank_as_baseline(const CaseResult& result, const Baseline& wanted) {
  return std::tuple(result.ranks(), result.factors.at("strategy") != wanted.strategy,
                    result.factors.at("microbatches").get<Size>(), cores_of(result));
}

const SummaryRow* find_baseline(const std::vector<SummaryRow>& rows, const SummaryRow& row,
                                const Baseline& wanted, bool weak) {
  const Json work = work_of(row, weak);
  const SummaryRow* best = nullptr;
  for (const SummaryRow& candidate : rows) {
    const CaseResult& result = candidate.result;
    if (!result.is_measured() || work_of(candidate, weak) != work) continue;
    if (wanted.ranks && result.ranks() != *wanted.ranks) continue;
    if (best == nullptr ||
        rank_as_baseline(result, wanted) < rank_as_baseline(best->result, wanted))
      best = &candidate;
  }
  return best;
}

/// Sets the numbers of a row relative to its baseline.
void relate(SummaryRow& row, const CaseResult& base, bool weak) {
  const CaseResult& result = row.result;
  row.baseline = base.id;
  row.baseline_ranks = base.ranks();
  row.baseline_step_seconds = base.step_seconds->median;
  const double more_ranks = static_cast<double>(result.ranks()) / static_cast<double>(base.ranks());
  const auto set = [&](std::optional<double>& speedup, std::optional<double>& efficiency,
                       double time_ratio) {
    speedup = weak ? time_ratio * more_ranks : time_ratio;
    efficiency = *speedup * cores_of(base) / cores_of(result);
  };
  const Statistics ratio = paired_ratio(result.rounds, base.rounds);
  set(row.speedup, row.efficiency,
      ratio.n > 0 ? ratio.median : base.step_seconds->median / result.step_seconds->median);
  if (!ratio.ci95) return;
  set(row.speedup_low, row.efficiency_low, ratio.ci95->low);
  set(row.speedup_high, row.efficiency_high, ratio.ci95->high);
}

}  // namespace

void add_scaling(std::vector<SummaryRow>& rows, const Study& study) {
  const bool weak = study.scaling == ScalingKind::weak;
  for (SummaryRow& row : rows) {
    row.scaling = name_of(study.scaling);
    if (!row.result.is_measured()) continue;
    if (const SummaryRow* base = find_baseline(rows, row, study.baseline, weak))
      relate(row, base->result, weak);
  }
}

}  // namespace tessera::bench
