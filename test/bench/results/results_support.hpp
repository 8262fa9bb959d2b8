// SPDX-License-Identifier: Apache-2.0
// Results of cases that were not run.
#pragma once

#include <string>

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
  result.attempt = 1;
  result.launch = "one";
  result.loss = {{"verdict", "equal"}, {"epoch_losses", {0.5, 0.25}}};
  result.memory = {{"planned_bytes", 100}, {"measured_bytes", 100}, {"predicted_oom", false}};
  result.prediction = {{"step_seconds", 0.9}};
  if (!ok) return result;
  result.step_seconds = {{"median", fake.seconds},
                         {"mad", 0.0},
                         {"min", fake.seconds},
                         {"p95", fake.seconds},
                         {"max", fake.seconds},
                         {"n", 30},
                         {"outliers", 0},
                         {"ci95_low", 0.9 * fake.seconds},
                         {"ci95_high", 1.25 * fake.seconds}};
  for (int round = 0; round < 10; ++round)
    result.rounds.push_back({"one", 1.0 * round, fake.seconds * (1 + 0.001 * (round % 5)), {1, 1}});
  result.samples_per_second = static_cast<double>(fake.batch) / fake.seconds;
  result.compute = {{"flops_per_second", 1e9},
                    {"flops_per_second_per_rank", 1e9 / static_cast<double>(fake.ranks)},
                    {"mfu", 0.5}};
  return result;
}

inline Results fake_results(const std::vector<FakeCase>& cases,
                            const std::string& scaling = "strong") {
  Results results{{{"name", "fake"},
                   {"small", false},
                   {"scaling", scaling},
                   {"baseline", {{"ranks", nullptr}, {"strategy", "data"}}},
                   {"limits", {{"case_seconds", 10.0}}},
                   {"cases", nlohmann::json::array()}},
                  {}};
  for (const FakeCase& fake : cases) {
    results.cases.push_back(fake_result(fake));
    const CaseResult& made = results.cases.back();
    results.study["cases"].push_back({{"id", made.id},
                                      {"label", made.label},
                                      {"factors", made.factors},
                                      {"skip_reason", nullptr}});
  }
  return results;
}

}  // namespace tessera::bench
