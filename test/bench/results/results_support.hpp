// SPDX-License-Identifier: Apache-2.0
// Results of cases that were not run.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "measure/statistics.hpp"
#include "results/summary.hpp"

namespace tessera::bench {

struct FakeCase {
  std::string strategy = "data";
  std::string axis = "data";
  Size ranks = 1;
  Size batch = 64;
  std::string status = "ok";
  double seconds = 1;
  nlohmann::json others = nlohmann::json::object();  ///< further factors
};

inline CaseResult fake_result(const FakeCase& fake) {
  const std::string mesh = fake.axis + "=" + std::to_string(fake.ranks);
  const bool ok = fake.status == "ok";
  CaseResult result;
  result.id = fake.strategy + "-" + std::to_string(fake.ranks) + "-b" + std::to_string(fake.batch);
  result.label = "strategy=" + fake.strategy + " mesh=" + mesh +
                 " global_batch=" + std::to_string(fake.batch) + " microbatches=1";
  result.factors = {{"strategy", fake.strategy},
                    {"mesh", mesh},
                    {"ranks", fake.ranks},
                    {"global_batch", fake.batch},
                    {"microbatches", 1}};
  result.factors.update(fake.others);
  result.facts = {{"nodes", {{"count", 1}}}};
  result.config = {{"training", {{"batch_size", fake.batch}}}};
  result.status = fake.status;
  result.reason = ok ? "" : "because, it \"is\"";
  result.exit_code = ok ? 0 : 5;
  result.launches = 1;
  result.launch = "one";
  result.loss.emplace().verdict = "equal";
  result.loss->epoch_losses = {0.5, 0.25};
  result.memory.emplace().planned_bytes = 100;
  result.memory->measured_bytes = 100;
  result.prediction.emplace().step_seconds = 0.9;
  if (!ok) return result;
  const double t = fake.seconds;
  result.step_seconds = StepTimes{{t, 0, t, t, t, 0.9 * t, 1.25 * t, 30, 0}, 5};
  for (int round = 0; round < 10; ++round)
    result.rounds.push_back({"one", 1.0 * round, fake.seconds * (1 + 0.001 * (round % 5)), {1, 1}});
  result.samples_per_second = static_cast<double>(fake.batch) / fake.seconds;
  ComputeResult& compute = result.compute.emplace();
  compute.flops_per_step = 1e9;
  compute.flops_per_second = 1e9;
  compute.flops_per_second_per_rank = 1e9 / static_cast<double>(fake.ranks);
  compute.gemm_peak_flops_per_second = 2e9;
  return result;
}

inline Results fake_results(const std::vector<FakeCase>& cases,
                            ScalingKind scaling = ScalingKind::strong) {
  Results results;
  results.study.name = "fake";
  results.study.scaling = scaling;
  for (const FakeCase& fake : cases) results.cases.push_back(fake_result(fake));
  return results;
}

/// Returns the study of results as its document has it.
inline StudyCases study_of(const Results& results) {
  StudyCases study{results.study, {}};
  for (const CaseResult& result : results.cases) {
    Case& point = study.cases.emplace_back();
    point.id = result.id;
    point.label = result.label;
    point.factors = result.factors;
  }
  return study;
}

/// Writes a directory whose results are derived to be these: a launch that has run their rounds.
inline void write_results_of_launch(const std::string& path, const Results& results) {
  ResultsDirectory(path).prepare(study_of(results), false);
  Journal journal(path, "one", {});
  for (const CaseResult& result : results.cases) {
    CaseResult first = result;
    first.rounds.clear();
    const std::size_t rounds = std::max<std::size_t>(result.rounds.size(), 1);
    for (std::size_t round = 0; round < rounds; ++round) {
      End end{result.id, static_cast<Size>(round)};
      end.last = round + 1 == rounds;
      if (round == 0) end.result = first;
      if (!result.rounds.empty()) {
        end.block = result.rounds[round];
        end.steps = {end.block->seconds};
      }
      journal.append(end);
    }
  }
}

}  // namespace tessera::bench
