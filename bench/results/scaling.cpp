// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

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
    const bool is_how = !is_configuration || key.starts_with("distributed.") ||
                        key == "training.activation_checkpointing";
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

/// Returns how many times as long `slower` takes for a sample as `faster`, if both were measured.
std::optional<Statistics> time_of_sample(const CaseResult& slower, const CaseResult& faster) {
  if (!slower.simulated.empty()) return {};
  Statistics ratio = paired_ratio(faster.rounds, slower.rounds);
  if (ratio.n == 0) return {};
  const double samples = static_cast<double>(faster.batch()) / static_cast<double>(slower.batch());
  ratio.median *= samples;
  for (std::optional<double>* end : {&ratio.ci95_low, &ratio.ci95_high})
    if (*end) **end *= samples;
  return ratio;
}

/// Sets the numbers of a row relative to its baseline.
void relate_to_baseline(SummaryRow& row, const CaseResult& base) {
  const CaseResult& result = row.result;
  row.baseline = base.id;
  row.baseline_ranks = base.ranks();
  row.baseline_step_seconds = base.step_seconds->median;
  row.speedup = *result.samples_per_second / *base.samples_per_second;
  row.efficiency = *row.speedup * cores_of(base) / cores_of(result);
  row.corrected_speedup = time_of_sample(base, result);
}

/// A row ties with the fastest one of the same work unless the interval of how much longer it takes
/// lies above 1 + smallest_effect. Simulated rows tie if they are equal.
void relate_to_fastest(SummaryRow& row, const CaseResult& fastest) {
  if (row.result.id == fastest.id) {
    row.standing = "fastest";
    return;
  }
  row.over_fastest = time_of_sample(row.result, fastest);
  const bool may_be_as_fast =
      row.result.simulated.empty()
          ? member_of(row.over_fastest, &Statistics::ci95_low).value_or(1) < 1 + smallest_effect
          : *row.result.samples_per_second >= (1 - 1e-9) * *fastest.samples_per_second;
  if (may_be_as_fast) row.standing = "tied";
}

/// Returns what defines the program of a case on one rank, which shards nothing: its factors but
/// strategy and mesh, and what it needs.
Json program_on_one_rank(const CaseResult& result) {
  Json program = result.factors;
  program.erase("strategy");
  program.erase("mesh");
  if (result.memory) program["memory"] = result.memory->parts;
  if (result.compute) program["flops"] = result.compute->flops_per_step;
  return program;
}

/// Lets one case stand for all cases that are the same program on one rank: the preferred baseline.
void find_same_programs(std::vector<SummaryRow>& rows, const Baseline& wanted) {
  std::map<Json, const CaseResult*> chosen;
  const auto is_alone = [](const CaseResult& result) {
    return result.is_measured() && result.ranks() == 1;
  };
  for (const SummaryRow& row : rows) {
    if (!is_alone(row.result)) continue;
    const CaseResult*& best = chosen[program_on_one_rank(row.result)];
    if (best == nullptr || rank_as_baseline(row.result, wanted) < rank_as_baseline(*best, wanted))
      best = &row.result;
  }
  for (SummaryRow& row : rows) {
    if (!is_alone(row.result)) continue;
    const std::string& id = chosen.at(program_on_one_rank(row.result))->id;
    if (id != row.result.id) row.same_program_as = id;
  }
}

/// Returns what the rate of products depends on, besides the machine.
Json product_key(const CaseResult& result) {
  Json key{result.ranks(), result.factors.value("distributed.threads", Json())};
  for (const char* name : {"dtype", "short_products", "matmul_precision"})
    key.push_back(result.facts.is_object() ? result.facts.value(name, Json()) : Json());
  return key;
}

}  // namespace

void relate_rows(std::vector<SummaryRow>& rows, const Study& study) {
  const bool weak = study.scaling == ScalingKind::weak;
  std::map<Json, double> peaks;
  std::map<Json, const CaseResult*> fastest;  // of a work, and of a work on a number of ranks
  const auto on_ranks = [](Json work, const CaseResult& result) {
    work["ranks"] = result.ranks();
    return work;
  };
  find_same_programs(rows, study.baseline);
  for (const SummaryRow& row : rows) {
    if (!row.result.is_measured()) continue;
    if (row.result.compute) {
      double& peak = peaks[product_key(row.result)];
      peak = std::max(peak, row.result.compute->gemm_peak_flops_per_second);
    }
    if (!row.same_program_as.empty()) continue;
    const Json work = work_of(row, weak);
    for (const Json& key : {work, on_ranks(work, row.result)}) {
      const CaseResult*& best = fastest[key];
      if (best == nullptr || *row.result.samples_per_second > *best->samples_per_second)
        best = &row.result;
    }
  }
  for (SummaryRow& row : rows) {
    row.scaling = name_of(study.scaling);
    if (!row.result.is_measured()) continue;
    if (const double peak = peaks[product_key(row.result)]; peak > 0) {
      row.gemm_peak_flops_per_second = peak;
      if (const auto& rate = row.result.compute->flops_per_second) row.mfu = *rate / peak;
    }
    if (!row.same_program_as.empty()) continue;
    const Json work = work_of(row, weak);
    relate_to_fastest(row, *fastest.at(work));
    if (const CaseResult& best = *fastest.at(on_ranks(work, row.result)); best.id != row.result.id)
      row.over_fastest_on_ranks = time_of_sample(row.result, best);
    if (const SummaryRow* base = find_baseline(rows, row, study.baseline, weak))
      relate_to_baseline(row, base->result);
  }
}

}  // namespace tessera::bench
