// SPDX-License-Identifier: Apache-2.0
#include "results/summary.hpp"

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>

#include "bench/results/results_support.hpp"
#include "run/console.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;

const FakeCase one{.ranks = 1, .seconds = 8};
const FakeCase two{.ranks = 2, .seconds = 5};
const FakeCase four{.ranks = 4, .seconds = 2.5};

/// Returns the row of a case as summary.json has it.
Json row(const Summary& summary, const std::string& id) {
  const Json document = summary;
  for (const Json& candidate : document.at("cases"))
    if (candidate.at("id") == id) return candidate;
  ADD_FAILURE() << id;
  return {};
}

TEST(Summary, StrongScaling) {
  const Summary summary = summarize_study(fake_results({one, two, four}));
  const Json at_four = row(summary, "data-4-b64");
  EXPECT_EQ(at_four.at("baseline"), "data-1-b64");
  EXPECT_DOUBLE_EQ(at_four.at("speedup"), 8 / 2.5);
  EXPECT_DOUBLE_EQ(at_four.at("efficiency"), 8 / 2.5 / 4);
  // The common scatter of the rounds cancels out.
  for (const char* key : {"corrected_speedup", "corrected_speedup_low", "corrected_speedup_high"})
    EXPECT_NEAR(at_four.at(key), 8 / 2.5, 1e-9);
  EXPECT_DOUBLE_EQ(row(summary, "data-1-b64").at("efficiency"), 1);
  EXPECT_EQ(at_four.at("standing"), "fastest");
  EXPECT_TRUE(at_four.at("over_fastest").is_null());
  EXPECT_NEAR(row(summary, "data-2-b64").at("over_fastest_low"), 2, 1e-9);
}

TEST(Summary, SpeedUpIsTheRatioOfSamplesPerSecondAndTheCorrectedOneThatOfRounds) {
  Results results = fake_results({one, two});
  // The machine was twice as slow in four rounds of the second case.
  for (int round = 0; round < 4; ++round) {
    Round& slow = results.cases[1].rounds[static_cast<std::size_t>(round)];
    slow.seconds *= 2;
    slow.machine = {2, 2};
  }
  results.cases[1].step_seconds->median = 10;
  results.cases[1].samples_per_second = 6.4;
  const Json at_two = row(summarize_study(results), "data-2-b64");
  EXPECT_DOUBLE_EQ(at_two.at("speedup"), 6.4 / 8);
  EXPECT_DOUBLE_EQ(at_two.at("efficiency"), 6.4 / 8 / 2);
  EXPECT_NEAR(at_two.at("corrected_speedup"), 8.0 / 5, 1e-9);
}

TEST(Summary, OnlyCasesOfTheSameWorkCompete) {
  FakeCase small = two, other = one;
  small.batch = 32;
  other.others = {{"model.kind", "pinn"}};
  other.seconds = 0.001;
  Results results = fake_results({one, two, small, other});
  results.cases[3].id = "pinn";
  const Summary summary = summarize_study(results);
  EXPECT_EQ(row(summary, "data-2-b64").at("standing"), "fastest");
  EXPECT_EQ(row(summary, "data-2-b32").at("standing"), "fastest");
  EXPECT_EQ(row(summary, "pinn").at("standing"), "fastest");
  EXPECT_TRUE(row(summary, "data-1-b64").at("standing").is_null());
  EXPECT_EQ(figures_of_merit(summary).find("best_samples_per_second"), std::string::npos);
}

TEST(Summary, MfuHasOnePeakForEachTypeAndNumberOfRanks) {
  FakeCase zero = two;
  zero.strategy = "zero1";
  FakeCase half = two;
  half.strategy = "zero2";
  Results results = fake_results({one, two, zero, half});
  results.cases[2].compute->gemm_peak_flops_per_second = 4e9;
  results.cases[3].facts["dtype"] = "bfloat16";
  const Summary summary = summarize_study(results);
  EXPECT_DOUBLE_EQ(row(summary, "data-1-b64").at("mfu"), 0.5);
  for (const char* id : {"data-2-b64", "zero1-2-b64"}) {
    EXPECT_DOUBLE_EQ(row(summary, id).at("gemm_peak_flops_per_second"), 4e9);
    EXPECT_DOUBLE_EQ(row(summary, id).at("mfu"), 0.25);
  }
  EXPECT_DOUBLE_EQ(row(summary, "zero2-2-b64").at("mfu"), 0.5);
}

TEST(Summary, CasesIndistinguishableFromTheBestAreTies) {
  FakeCase close = two;
  close.strategy = "zero1";
  close.seconds = 2.55;
  const Summary summary = summarize_study(fake_results({one, close, four}));
  EXPECT_EQ(row(summary, "data-4-b64").at("standing"), "fastest");
  EXPECT_EQ(row(summary, "zero1-2-b64").at("standing"), "tied") << "2 % slower";
  EXPECT_TRUE(row(summary, "data-1-b64").at("standing").is_null());
  EXPECT_DOUBLE_EQ(summary.machine.drift.value(), 0);
  EXPECT_NEAR(summary.machine.resolution.value(), 0.03, 1e-9);
  const std::string table = summary_table(summary);
  EXPECT_NE(table.find("~ zero1"), std::string::npos) << table;
  EXPECT_NE(table.find("~ cannot be told apart from the fastest\n"), std::string::npos) << table;
  EXPECT_NE(table.find("rounds of the median case tell differences of 3.0% from none"),
            std::string::npos);
}

TEST(Summary, CasesAreAlsoBehindTheFastestOnAsManyRanks) {
  FakeCase zero = two;
  zero.strategy = "zero1";
  zero.seconds = 6;
  const Summary summary = summarize_study(fake_results({one, two, zero, four}));
  for (const char* end : {"", "_low", "_high"}) {
    const std::string key = std::string("over_fastest_on_ranks") + end;
    EXPECT_NEAR(row(summary, "zero1-2-b64").at(key), 6.0 / 5, 1e-9);
    EXPECT_TRUE(row(summary, "data-2-b64").at(key).is_null());
    EXPECT_TRUE(row(summary, "data-1-b64").at(key).is_null()) << "alone on one rank";
  }
  EXPECT_NEAR(row(summary, "zero1-2-b64").at("over_fastest"), 6 / 2.5, 1e-9);
}

TEST(Summary, FewRoundsGiveNoVerdict) {
  Results results = fake_results({one, two});
  for (CaseResult& result : results.cases) result.rounds.resize(1);
  const Summary summary = summarize_study(results);
  EXPECT_TRUE(row(summary, "data-1-b64").at("standing").is_null());
  EXPECT_FALSE(summary.machine.resolution);
  EXPECT_TRUE(row(summary, "data-2-b64").at("corrected_speedup_low").is_null());
  EXPECT_EQ(summary.machine.timing_reliable, false);
  const std::string table = summary_table(summary);
  EXPECT_NE(table.find("no case is named as the fastest: 2 of 2 measured cases have fewer than 6"),
            std::string::npos)
      << table;
  EXPECT_EQ(table.find("* data"), std::string::npos) << table;
  EXPECT_NE(figures_of_merit(summary).find("FOM: best_samples_per_second 12.8 samples/s\n"
                                           "FOM: timing_reliable 0 1\n"),
            std::string::npos);
}

TEST(Summary, AMachineThatVariesTooMuchNamesNoWinner) {
  Results results = fake_results({one, two});
  for (CaseResult& result : results.cases)
    for (std::size_t k = 0; k < result.rounds.size(); k += 2) {
      result.rounds[k].seconds *= 2;
      result.rounds[k].machine = {2, 2};
    }
  const Summary summary = summarize_study(results);
  EXPECT_EQ(summary.machine.timing_reliable, false);
  EXPECT_EQ(summary.machine.problem, "the machine's speed varied by 100 % between rounds");
  for (const SummaryRow& row : summary.cases) EXPECT_EQ(row.standing, "");
  // Rounds that scatter by themselves.
  results = fake_results({one, two});
  for (CaseResult& result : results.cases)
    for (std::size_t k = 0; k < result.rounds.size(); k += 2) result.rounds[k].seconds *= 3;
  EXPECT_EQ(summarize_study(results).machine.timing_reliable, false);
  EXPECT_EQ(summarize_study(fake_results({one, two})).machine.timing_reliable, true);
  EXPECT_EQ(summarize_study(fake_results({})).machine.problem, "no case was measured");
  results = fake_results({one, two});
  for (CaseResult& result : results.cases) result.simulated = "somewhere";
  EXPECT_FALSE(summarize_study(results).machine.timing_reliable);
  EXPECT_EQ(row(summarize_study(results), "data-2-b64").at("standing"), "fastest");
}

// The fixed kernels share memory with those of other ranks and threads, and so take longer.
TEST(Summary, DriftIsThatOfTheMachineWithEquallyManyRanksAndThreads) {
  const FakeCase threads{.strategy = "zero1", .seconds = 5, .others = {{"distributed.threads", 2}}};
  Results results = fake_results({one, two, threads});
  for (const std::size_t other : {1, 2})
    for (Round& round : results.cases[other].rounds) round.machine = {3, 3};
  EXPECT_NEAR(*summarize_study(results).machine.drift, 0, 1e-9);
  for (std::size_t k = 0; k < 5; ++k) results.cases[2].rounds[k].machine = {6, 6};
  EXPECT_NEAR(*summarize_study(results).machine.drift, 1, 1e-9);
}

TEST(Summary, CasesThatAreOneProgramOnOneRankAreOneCase) {
  FakeCase zero = one, half = one, tensor = two;
  zero.strategy = "zero1";
  zero.seconds = 4;  // noise
  half.strategy = "fsdp";
  half.others = {{"distributed.mixed_precision", "bf16"}};
  tensor.strategy = "tensor";
  const Summary summary = summarize_study(fake_results({zero, one, half, two, tensor}));
  const Json other = row(summary, "zero1-1-b64");
  EXPECT_EQ(other.at("same_program_as"), "data-1-b64");
  for (const char* key : {"standing", "speedup", "efficiency", "corrected_speedup", "over_fastest"})
    EXPECT_TRUE(other.at(key).is_null()) << key;
  for (const char* id : {"data-1-b64", "fsdp-1-b64", "data-2-b64", "tensor-2-b64"})
    EXPECT_TRUE(row(summary, id).at("same_program_as").is_null()) << id;
  EXPECT_EQ(row(summary, "data-2-b64").at("standing"), "fastest");
  EXPECT_DOUBLE_EQ(row(summary, "data-2-b64").at("speedup"), 8.0 / 5);
  const std::string table = summary_table(summary);
  EXPECT_NE(table.find("= zero1"), std::string::npos) << table;
  // Another plan is another program.
  Results results = fake_results({zero, one});
  results.cases[0].memory->parts["gathered_units"] = 8;
  EXPECT_TRUE(row(summarize_study(results), "zero1-1-b64").at("same_program_as").is_null());
}

TEST(Summary, TheSmallestMeshIsTheBaselineWhereOneRankIsMissing) {
  const Summary summary =
      summarize_study(fake_results({two, four, {.ranks = 1, .status = "oom", .seconds = 8}}));
  const Json at_four = row(summary, "data-4-b64");
  EXPECT_EQ(at_four.at("baseline_ranks"), 2);
  EXPECT_DOUBLE_EQ(at_four.at("speedup"), 2);
  EXPECT_DOUBLE_EQ(at_four.at("efficiency"), 1) << "p0 T(p0) / (p T(p))";
}

TEST(Summary, WeakScalingComparesEqualBatchesOfARank) {
  const Summary summary = summarize_study(fake_results({{.ranks = 1, .batch = 16, .seconds = 2},
                                                        {.ranks = 4, .batch = 64, .seconds = 2.5},
                                                        {.ranks = 4, .batch = 16, .seconds = 1}},
                                                       ScalingKind::weak));
  const Json same = row(summary, "data-4-b64");
  EXPECT_EQ(same.at("baseline"), "data-1-b16");
  EXPECT_DOUBLE_EQ(same.at("efficiency"), 2 / 2.5);
  EXPECT_DOUBLE_EQ(same.at("speedup"), 4 * 2 / 2.5) << "of samples per second";
  EXPECT_EQ(row(summary, "data-4-b16").at("baseline"), "data-4-b16") << "nobody else has its work";
}

TEST(Summary, TheBaselineDoesTheSameWorkWithThePreferredStrategy) {
  const FakeCase zero{
      .strategy = "zero1", .seconds = 7, .others = {{"distributed.schedule", "gpipe"}}};
  const FakeCase other_width{.ranks = 1, .batch = 32, .seconds = 1};
  const FakeCase overlap{
      .ranks = 2, .batch = 64, .seconds = 4, .others = {{"distributed.overlap", true}}};
  const FakeCase wide{.ranks = 2, .batch = 96, .seconds = 4, .others = {{"model.seed", 7}}};
  const Summary summary = summarize_study(fake_results({zero, one, other_width, overlap, wide}));
  EXPECT_EQ(row(summary, "zero1-1-b64").at("baseline"), "data-1-b64");
  EXPECT_EQ(row(summary, "data-2-b64").at("baseline"), "data-1-b64");
  EXPECT_EQ(row(summary, "data-2-b96").at("baseline"), "data-2-b96");
}

TEST(Summary, EfficiencyIsPerCoreWhereThreadsVary) {
  const Json threads{{"distributed.threads", 2}};
  const FakeCase alone{.ranks = 1, .seconds = 8, .others = {{"distributed.threads", 1}}};
  const FakeCase threaded{.strategy = "zero1", .ranks = 1, .seconds = 5, .others = threads};
  const FakeCase both{.ranks = 2, .seconds = 2.5, .others = threads};
  const Summary summary = summarize_study(fake_results({threaded, alone, both}));
  EXPECT_EQ(row(summary, "data-2-b64").at("baseline"), "data-1-b64");
  EXPECT_DOUBLE_EQ(row(summary, "data-2-b64").at("speedup"), 8 / 2.5);
  EXPECT_DOUBLE_EQ(row(summary, "data-2-b64").at("efficiency"), 8 / 2.5 / 4);
  EXPECT_DOUBLE_EQ(row(summary, "zero1-1-b64").at("efficiency"), 8.0 / 5 / 2);
}

TEST(Summary, CasesThatAreNotOkHaveNoSpeed) {
  FakeCase invalid = four;
  invalid.status = "invalid";
  Results results = fake_results({one, invalid});
  results.cases[1].step_seconds.emplace().median = 0.1;
  results.cases[1].samples_per_second = 1e9;
  const Summary summary = summarize_study(results);
  const Json off = row(summary, "data-4-b64");
  EXPECT_TRUE(off.at("samples_per_second").is_null());
  EXPECT_TRUE(off.at("speedup").is_null());
  EXPECT_EQ(row(summary, "data-1-b64").at("standing"), "fastest");
}

TEST(Summary, VerdictsAndExitCodes) {
  const auto expect = [](const std::string& status, const std::string& verdict, ExitCode code) {
    FakeCase second = two;
    second.status = status;
    const Summary summary = summarize_study(fake_results({one, second}));
    EXPECT_EQ(summary.result, verdict) << status;
    EXPECT_EQ(summary.exit_code, code) << status;
    EXPECT_EQ(summary.counts.at(status), status == "ok" ? 2 : 1);
  };
  expect("ok", "PASS", ExitCode::ok);
  expect("skipped", "PASS", ExitCode::ok);
  expect("invalid", "INVALID", ExitCode::wrong_result);
  expect("failed", "FAIL", ExitCode::communication);
  expect("timeout", "FAIL", ExitCode::communication);  // the fake's exit code is 5
  expect("oom", "FAIL", ExitCode::communication);
  expect("pending", "PARTIAL", ExitCode::skipped);
}

TEST(Summary, APredictedLackOfMemoryIsNoFailure) {
  FakeCase second = two;
  second.status = "oom";
  Results results = fake_results({one, second});
  results.cases[1].memory->predicted_oom = true;
  EXPECT_EQ(summarize_study(results).result, "PASS");
  results.cases.erase(results.cases.begin());
  EXPECT_EQ(summarize_study(results).result, "PASS") << "though nothing was measured";
  EXPECT_EQ(summarize_study(results).exit_code, ExitCode::ok);
}

TEST(Summary, SharesAreRelativeToTheInstrumentedStep) {
  Results results = fake_results({one, two});
  Breakdown& breakdown = results.cases[1].breakdown.emplace();
  breakdown.step_seconds = 4;
  breakdown.communication.mean_rank_seconds = 0.5;
  breakdown.idle.mean_rank_seconds = 0.5;
  breakdown.products.mean_rank_seconds = 2.5;
  const Summary summary = summarize_study(results);
  EXPECT_TRUE(row(summary, "data-1-b64").at("product_share").is_null()) << "no breakdown";
  EXPECT_DOUBLE_EQ(row(summary, "data-2-b64").at("product_share"), 0.625);
  EXPECT_DOUBLE_EQ(row(summary, "data-2-b64").at("communication_share"), 0.25);
  EXPECT_DOUBLE_EQ(row(summary, "data-2-b64").at("flops_per_second_per_rank"), 0.5e9);
  const std::string table = summary_table(summary);
  EXPECT_NE(table.find("62.5%       0.5 50.0%"), std::string::npos) << table;
}

TEST(Csv, QuotesTextAndLeavesUnknownValuesEmpty) {
  FakeCase failed = two;
  failed.status = "failed";
  Results results = fake_results({one, failed});
  results.steps["data-1-b64"] = {{0.5}, {0.25}};
  const std::string csv = cases_csv(summarize_study(results));
  const auto lines = split_text(csv, '\n');
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_TRUE(lines[0].starts_with("id,label,status,reason,strategy,mesh,ranks,"));
  EXPECT_TRUE(lines[1].starts_with(
      "data-1-b64,strategy=data mesh=data=1 global_batch=64 "
      "microbatches=1,ok,,data,data=1,1,1,64,64,1,8,0,8,8,8,7.2,10,,30,0,10,1,0,"
      "8,,data-1-b64,1,8,strong,1,"))
      << lines[1];
  EXPECT_NE(lines[2].find(",failed,\"because, it \"\"is\"\"\",data,"), std::string::npos)
      << lines[2];
  EXPECT_EQ(steps_csv(results), "id,round,step,seconds\ndata-1-b64,0,0,0.5\ndata-1-b64,1,0,0.25\n");
}

TEST(Csv, HasAColumnForEachSweptKey) {
  FakeCase late = two;
  late.others = {{"distributed.overlap", true}, {"model.widths", {2, 3}}};
  const auto lines = split_text(cases_csv(summarize_study(fake_results({one, late}))), '\n');
  const std::string keys = ",microbatches,distributed.overlap,model.widths,step_seconds_median,";
  EXPECT_NE(lines[0].find(keys), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find(",64,1,,,8,"), std::string::npos) << lines[1];
  EXPECT_NE(lines[2].find(",32,1,true,\"[2,3]\",5,"), std::string::npos) << lines[2];
}

TEST(Console, PrintsFiguresOfMerit) {
  FakeCase failed = four;
  failed.status = "failed";
  const Summary summary = summarize_study(fake_results({one, two, failed}));
  EXPECT_EQ(figures_of_merit(summary), R"(FOM: data-1-b64.samples_per_second 8 samples/s
FOM: data-1-b64.step_seconds 8 s
FOM: data-1-b64.efficiency 1 1
FOM: data-1-b64.mfu 0.5 1
FOM: data-2-b64.samples_per_second 12.8 samples/s
FOM: data-2-b64.step_seconds 5 s
FOM: data-2-b64.efficiency 0.8 1
FOM: data-2-b64.mfu 0.5 1
FOM: cases_ok 2 1
FOM: best_samples_per_second 12.8 samples/s
FOM: timing_reliable 1 1
)");
  EXPECT_EQ(result_text(summary), "1 failed, 2 ok study fake");
}

TEST(Console, TheTableStarsTheBestAndGivesReasons) {
  FakeCase failed = four;
  failed.status = "failed";
  failed.others = {{"distributed.overlap", true}, {"model.widths", {1000, 10000, 10000, 1000}}};
  const std::string table = summary_table(summarize_study(fake_results({one, two, failed})));
  std::size_t stars = 0;
  for (const std::string& line : split_text(table, '\n')) {
    EXPECT_LE(line.size(), table_width) << line;
    EXPECT_FALSE(line.ends_with(" ")) << line;
    if (!line.starts_with("* data")) continue;
    ++stars;
    EXPECT_NE(line.find("data=2"), std::string::npos) << line;
  }
  EXPECT_EQ(stars, 1u);
  EXPECT_NE(table.find("failed: because, it \"is\"\n    data-4-b64"), std::string::npos) << table;
  EXPECT_NE(table.find("speed and eff: samples/s over those of\n  data-1-b64 (8.00 s a step)"),
            std::string::npos)
      << table;
}

TEST(Console, EveryFactorIsNamedOnceAndWhatIsEqualStandsAbove) {
  std::vector<FakeCase> cases;
  for (const char* schedule : {"gpipe", "zero_bubble"})
    for (const Size ranks : {2, 4})
      cases.push_back({.axis = "pipeline",
                       .ranks = ranks,
                       .seconds = 1.0 / static_cast<double>(ranks),
                       .others = {{"distributed.schedule", schedule},
                                  {"distributed.virtual_stages", schedule[0] == 'g' ? 1 : 2},
                                  {"training.loss", "bce"}}});
  const std::string table = summary_table(summarize_study(fake_results(cases)));
  EXPECT_TRUE(table.starts_with(
      "strategy data, global batch 64, microbatches 1, loss bce, status ok, loss ≡\n\n"))
      << table;
  EXPECT_NE(table.find("\n  mesh       ranks schedule "), std::string::npos) << table;
  EXPECT_EQ(table.find("virtual"), std::string::npos) << "follows from the schedule";
  EXPECT_EQ(table.find(".."), std::string::npos) << table;
}

TEST(TextTable, FitsWithoutWrapping) {
  TextColumn names{"name", {std::string(80, 'n'), "short"}, true};
  TextColumn kept{"kept", {"1", "2"}};
  TextColumn spare{std::string(20, 's'), {"3", "4"}, false, false, 1};
  const std::string all = table_text({names, kept}), less = table_text({names, kept, spare});
  EXPECT_EQ(all, less);
  names.cells[0] += std::string(40, 'n');
  for (const std::string& line : split_text(table_text({names, kept, spare}), '\n'))
    EXPECT_LE(line.size(), table_width) << line;
  // A wide title has several lines, and ends no table that it makes too wide.
  const std::string titled = table_text({{"mixed_precision", {"no", "bf16"}, true}, kept});
  EXPECT_TRUE(titled.starts_with("mixed_\nprecision kept\n")) << titled;
  EXPECT_NE(table_text({{std::string(120, 't'), {"1", "2"}, true}, kept}), "");
  EXPECT_EQ(table_text({{"empty", {"", ""}}, kept}), table_text({kept}));
}

TEST(Console, SamplesPerSecondAreRoundedAsInTheReport) {
  EXPECT_EQ(rate(17305.6), "17,306");
  EXPECT_EQ(rate(390.84), "390.8");
  EXPECT_EQ(rate(75.789), "75.79");
  EXPECT_EQ(rate(std::nullopt), "");
}

}  // namespace
}  // namespace tessera::bench
