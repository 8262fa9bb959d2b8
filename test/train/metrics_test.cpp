// SPDX-License-Identifier: Apache-2.0
// Reports while a training runs: metrics in files, and progress for a person.
#include <cmath>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint_support.hpp"
#include "engine/error_everywhere.hpp"
#include "engine/serial_training.hpp"
#include "engine/strategy_support.hpp"
#include "file_size_limit.hpp"

namespace tessera {
namespace {

using checkpoint_test::SharedDirectory;
using train_test::error_everywhere;
using train_test::Experiment;
using train_test::for_strategies;
using train_test::primes;
using train_test::relative_difference;

/// Returns the records of a file.
std::vector<nlohmann::json> records_of(const std::string& file) {
  std::vector<nlohmann::json> records;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) records.push_back(nlohmann::json::parse(line));
  return records;
}

/// Returns the values of a key of the records that have it.
std::vector<double> values_of(const std::vector<nlohmann::json>& records, const std::string& key) {
  std::vector<double> values;
  for (const nlohmann::json& record : records)
    if (record.contains(key)) values.push_back(record[key]);
  return values;
}

struct WithMetrics {
  TrainingMetrics metrics;
  std::vector<nlohmann::json> records;
};

template <class T>
WithMetrics run_with_metrics(Experiment setup, const OutputConfig& output,
                             const Checkpointing& checkpointing = {},
                             const std::string& from = "") {
  setup.model.dtype = dtype_of<StateOf<T>>();
  Trainer<T> trainer(setup.model, setup.training, {}, checkpointing, {.output = output});
  if (!from.empty()) trainer.resume(from);
  const TrainingMetrics metrics = trainer.fit(setup.data);
  EXPECT_EQ(plan_violation(metrics), "");
  EXPECT_EQ(metrics.metrics_not_written, "");
  return {metrics, records_of(output.metrics)};
}

TEST(Metrics, OfEpochsEqualThoseOfOneRankOnEveryMesh) {
  Experiment base = primes();
  base.data.samples = 2 * base.training.batch_size;  // equal batches: their means are the epoch's
  base.training.optimizer.kind = OptimizerKind::sgd;
  const train_test::Trained alone = train_test::train_layers(base);
  double squares = 0;
  for (const double element : alone.gradients) squares += element * element;
  for_strategies(base, [&](const Experiment& setup, const std::string& what) {
    SCOPED_TRACE(what);
    const SharedDirectory directory;
    const WithMetrics made =
        run_with_metrics<double>(setup, {.metrics = directory.file("metrics.jsonl")});
    ASSERT_EQ(made.records.size(), 2U);
    EXPECT_LE(relative_difference(values_of(made.records, "loss"), alone.losses), 1e-12);
    EXPECT_NEAR(made.records.back()["gradient_norm"].get<double>(), std::sqrt(squares), 1e-11);
    EXPECT_EQ(made.records.back()["learning_rate"], 0.01);
    EXPECT_EQ(made.records.back()["step"], 4);
    EXPECT_EQ(made.records.back()["epoch"], 2);
    EXPECT_GT(made.records.back()["samples_per_second"], 0);
  });
}

/// Returns the sum of the records' values whose key contains this text.
double sum_of(const nlohmann::json& record, const std::string& text) {
  double sum = 0;
  for (const auto& [key, value] : record.items())
    if (key.find(text) != std::string::npos) sum += value.get<double>();
  return sum;
}

/// A transformer with experts for meshes of this launch.
Experiment with_experts() {
  Experiment base =
      train_test::of_kind(ModelKind::transformer, DataKind::copy_task, LossKind::cross_entropy);
  const Size ranks = Communicator::world().size(), heads = ranks == 8 || ranks == 4 ? ranks : 6;
  base.model.transformer = {.vocabulary = 11,
                            .context = 5,
                            .width = 2 * heads,
                            .heads = heads,
                            .blocks = 2,
                            .inner_width = 13,
                            .experts = heads,
                            .top_k = 3,
                            .capacity_factor = 0.5,
                            .balance_loss = 0.3,
                            .router_z_loss = 0.2};
  base.data.validation_samples = 5;
  return base;
}

TEST(Metrics, OfRoutersAreEqualOnEveryMesh) {
  const Experiment base = with_experts();
  const auto experts = static_cast<double>(base.model.transformer.experts);
  std::vector<nlohmann::json> first;
  for_strategies(base, [&](const Experiment& setup, const std::string& what) {
    SCOPED_TRACE(what);
    const SharedDirectory directory;
    const OutputConfig output{.metrics = directory.file("metrics.jsonl"), .every_steps = 2};
    std::vector<nlohmann::json> records = run_with_metrics<double>(setup, output).records;
    std::erase_if(records, [](const auto& record) { return !record.contains("loss"); });
    ASSERT_EQ(records.size(), 3U);
    if (first.empty()) first = records;
    for (std::size_t r = 0; r < records.size(); ++r) {
      EXPECT_NEAR(sum_of(records[r], "router/load/"), 2, 1e-12);  // of two routers
      EXPECT_GT(records[r]["block2/router/dropped"].get<double>(), 0);
      EXPECT_LT(records[r]["block2/router/entropy"].get<double>(), std::log(experts));
      for (const auto& [key, value] : records[r].items())
        if (key.find("router") != std::string::npos || key.find("loss") != std::string::npos) {
          EXPECT_NEAR(value.get<double>(), first[r][key].get<double>(), 1e-9) << key;
        }
    }
  });
}

/// Returns the sum of the parts of the loss of a record, and expects it to have all of them.
double sum_of_parts(const nlohmann::json& record, const std::vector<std::string>& names) {
  double sum = 0;
  for (const std::string& name : names) {
    EXPECT_TRUE(record.contains(name)) << name;
    if (record.contains(name)) sum += record[name].get<double>();
  }
  return sum;
}

TEST(Metrics, PartsOfTheLossAddUpToIt) {
  const SharedDirectory directory;
  const OutputConfig output{.metrics = directory.file("metrics.jsonl"), .every_steps = 2};
  const auto expect_parts = [&](const Experiment& setup, const std::vector<std::string>& names) {
    const WithMetrics run = run_with_metrics<double>(setup, output);
    for (const nlohmann::json& record : run.records)
      if (record.contains("loss")) {
        EXPECT_NEAR(sum_of_parts(record, names), record["loss"].get<double>(), 1e-12);
      }
    double last = 0;
    for (const auto& [name, part] : run.metrics.final_parts) last += part;
    EXPECT_NEAR(last, run.metrics.final_loss(), 1e-12);
    EXPECT_EQ(run.metrics.final_parts.size(), names.size());
  };
  expect_parts(with_experts(), {"cross_entropy", "balance_loss", "router_z_loss"});
  expect_parts(train_test::small_vae(), {"bce", "kl_divergence"});
}

// The terms of routers guide the training only, and a divergence is a part of the model's loss.
TEST(Metrics, AValidationLossLeavesOutTheTermsOfRouters) {
  const SharedDirectory directory;
  const OutputConfig output{.metrics = directory.file("metrics.jsonl")};
  const auto validation = [&](Experiment setup) {
    setup.data.validation_samples = 5;
    const WithMetrics run = run_with_metrics<double>(setup, output);
    nlohmann::json record;
    for (const nlohmann::json& one : run.records)
      if (one.contains("validation_loss")) record = one;
    EXPECT_EQ(record["validation_loss"], run.metrics.validations.back().result.loss);
    return record;
  };
  // With a rate of 0 the predictions do not depend on the weights of the terms.
  Experiment guided = with_experts(), unguided = guided;
  guided.training.learning_rate = unguided.training.learning_rate = 0;
  unguided.model.transformer.balance_loss = unguided.model.transformer.router_z_loss = 0;
  const nlohmann::json with = validation(guided), without = validation(unguided);
  EXPECT_EQ(with["validation_loss"], without["validation_loss"]);
  EXPECT_EQ(with["validation_cross_entropy"], with["validation_loss"]);
  EXPECT_GT(with["validation_balance_loss"].get<double>(), 0.5);  // 0.3 for each of two routers
  EXPECT_GT(with["validation_router_z_loss"].get<double>(), 0);
  EXPECT_EQ(without["validation_balance_loss"], 0);
  const nlohmann::json vae = validation(train_test::small_vae());
  EXPECT_NEAR(sum_of_parts(vae, {"validation_bce", "validation_kl_divergence"}),
              vae["validation_loss"].get<double>(), 1e-12);
}

// The first record of a resumed training has the routing of the steps since the resumption.
TEST(Metrics, OfRoutersBeginAtAResumption) {
  const SharedDirectory directory, saves;
  Experiment setup = with_experts();
  setup.training.num_epochs = 4;  // of three steps
  const Checkpointing every_step{
      .config = {.directory = saves.path(), .every_steps = 1, .keep = 0}};
  const auto each =
      run_with_metrics<double>(setup, {.metrics = directory.file("each.jsonl"), .every_steps = 1},
                               every_step)
          .records;
  const OutputConfig other{.metrics = directory.file("other.jsonl"), .every_steps = 3};
  const auto records =
      run_with_metrics<double>(setup, other, {}, checkpoint_test::file_of(saves.path(), 7)).records;
  const std::vector<double> dropped = values_of(each, "block1/router/dropped");
  // Steps 8 and 9 have batches of 7 and 4 samples, whose choices are as many for each.
  EXPECT_NEAR(values_of(records, "block1/router/dropped").front(),
              (7 * dropped[7] + 4 * dropped[8]) / 11, 1e-12);
}

// An editor or a copy may leave blank lines. They do not hide the records behind them.
TEST(Metrics, ABlankLineKeepsTheRecordsBehindIt) {
  const SharedDirectory directory, saves;
  Experiment setup = primes();
  setup.training.num_epochs = 4;
  const OutputConfig output{.metrics = directory.file("metrics.jsonl")};
  const Checkpointing every_epoch{
      .config = {.directory = saves.path(), .every_steps = 3, .keep = 0}};
  run_with_metrics<double>(setup, output, every_epoch);
  const Communicator world = Communicator::world();
  if (world.rank() == 0) {
    std::vector<std::string> lines;
    std::ifstream file(output.metrics);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    std::ofstream edited(output.metrics);
    for (const std::string& line : lines) edited << line << "\n\n \t\r\n";
  }
  world.barrier();
  setup.model.dtype = DType::float64;
  Trainer<double> again(setup.model, setup.training, {}, {}, {.output = output});
  again.resume(checkpoint_test::file_of(saves.path(), 9));
  again.fit(setup.data);
  std::vector<double> steps;
  std::ifstream file(output.metrics);
  for (std::string line; std::getline(file, line);)
    if (line.find_first_not_of(" \t\r") != std::string::npos)
      steps.push_back(nlohmann::json::parse(line)["step"]);
  EXPECT_EQ(steps, (std::vector<double>{3, 6, 9, 12}));
}

TEST(Metrics, RecordsAreMeansOverTheirSteps) {
  Experiment setup = primes();
  setup.training.num_epochs = 3;
  setup.data.validation_samples = 5;
  const SharedDirectory directory;
  const WithMetrics every =
      run_with_metrics<double>(setup, {.metrics = directory.file("every.jsonl"), .every_steps = 1});
  const WithMetrics some =
      run_with_metrics<double>(setup, {.metrics = directory.file("some.jsonl"), .every_steps = 4});
  const std::vector<double> losses = values_of(every.records, "loss");
  ASSERT_EQ(losses.size(), 9U);
  const std::vector<double> samples{13, 13, 7};  // of the batches of an epoch
  std::vector<double> means;
  for (const std::size_t first : {0U, 4U}) {
    double sum = 0, count = 0;
    for (std::size_t s = first; s < first + 4; ++s) {
      sum += losses[s] * samples[s % 3];
      count += samples[s % 3];
    }
    means.push_back(sum / count);
  }
  EXPECT_LE(relative_difference(values_of(some.records, "loss"), means), 1e-13);
  EXPECT_EQ(values_of(some.records, "step"), (std::vector<double>{3, 4, 6, 8, 9}));
  std::vector<double> validations;
  for (const EpochValidation& one : some.metrics.validations)
    validations.push_back(one.result.loss);
  EXPECT_EQ(values_of(some.records, "validation_loss"), validations);
}

TEST(Metrics, ATrainingThatBeginsAgainReplacesThem) {
  const SharedDirectory directory;
  const OutputConfig output{.metrics = directory.file("metrics.jsonl"),
                            .tensorboard = directory.file("tensorboard")};
  EXPECT_EQ(run_with_metrics<float>(primes(), output).records.size(), 2U);
  EXPECT_EQ(run_with_metrics<float>(primes(), output).records.size(), 2U);
}

TEST(Metrics, FilesThatCannotBeOpenedStopAllRanks) {
  const SharedDirectory directory;
  const std::string file = directory.file("missing/metrics.jsonl");
  EXPECT_EQ(error_everywhere([&] { run_with_metrics<float>(primes(), {.metrics = file}); }),
            file + ": cannot open it: No such file or directory");
}

// The limit on the size of files stands for a full disk.
TEST(Metrics, AFullDiskDoesNotStopTheTraining) {
  const SharedDirectory directory;
  const std::string file = directory.file("metrics.jsonl");
  Experiment setup = primes();
  setup.training.num_epochs = 9;
  Trainer<float> trainer(setup.model, setup.training, {}, {}, {.output = {.metrics = file}});
  std::optional<test::FileSizeLimit> limit(600);
  testing::internal::CaptureStderr();
  const TrainingMetrics metrics = trainer.fit(setup.data);
  const std::string warning = testing::internal::GetCapturedStderr();
  limit.reset();
  EXPECT_EQ(metrics.epoch_losses.size(), 9U);
  const bool is_first = Communicator::world().rank() == 0;
  const std::string reason = file + ": cannot write to it: File too large";
  EXPECT_EQ(metrics.metrics_not_written, is_first ? reason : "");
  EXPECT_EQ(warning, is_first ? "tessera: warning: " + reason +
                                    "; training continues without metrics and hashes\n"
                              : "");
}

TEST(Progress, RanksMustAgreeOnIt) {
  const Communicator world = Communicator::world();
  if (world.size() == 1) return;
  Reporting reporting;
  if (world.rank() == 0) reporting.line = [](const TrainingProgress&) { return std::string(); };
  const Experiment setup = primes();
  Trainer<float> trainer(setup.model, setup.training, {}, {}, reporting);
  EXPECT_EQ(error_everywhere([&] { trainer.fit(setup.data); }),
            "reporting.line = 0: on rank 1; must be the same on every rank, but rank 0 has 1");
}

// A second training continues the steps, and its first record has its own losses only.
TEST(Metrics, OfASecondFitBeginAnew) {
  const SharedDirectory directory;
  const std::string file = directory.file("metrics.jsonl");
  Experiment setup = primes();
  setup.model.dtype = DType::float64;
  Trainer<double> trainer(setup.model, setup.training, {}, {},
                          {.output = {.metrics = file, .every_steps = 5}});
  trainer.fit(setup.data);
  setup.data.seed += 1;
  const TrainingMetrics second = trainer.fit(setup.data);
  const std::vector<nlohmann::json> records = records_of(file);
  EXPECT_EQ(values_of(records, "step"), (std::vector<double>{5, 10}));
  EXPECT_EQ(plan_violation(second), "");
  Trainer<double> alone(setup.model, setup.training, {}, {},
                        {.output = {.metrics = directory.file("alone.jsonl"), .every_steps = 1}});
  alone.fit(primes().data);
  alone.fit(setup.data);
  const std::vector<double> losses =
      values_of(records_of(directory.file("alone.jsonl")), "loss");  // of steps 1 to 12
  ASSERT_EQ(losses.size(), 12U);
  const double samples = 13 + 13 + 7 + 13;
  const double mean = (13 * losses[6] + 13 * losses[7] + 7 * losses[8] + 13 * losses[9]) / samples;
  EXPECT_NEAR(records[1]["loss"].get<double>(), mean, 1e-13);
}

// Rank 0 chooses the steps of progress; the calls of the reports are planned.
TEST(Progress, AddsNoOtherCallsAndCountsAllSteps) {
  Experiment longer = primes();
  longer.training.num_epochs = 400;
  Size last = 0;
  Trainer<float> trainer(longer.model, longer.training, {}, {},
                         {.line = [&](const TrainingProgress& now) {
                           last = now.report.step;
                           EXPECT_EQ(now.steps, 1200);
                           return std::string("line");
                         }});
  EXPECT_EQ(plan_violation(trainer.fit(longer.data)), "");
  EXPECT_LE(last, 1200);
}

}  // namespace
}  // namespace tessera
