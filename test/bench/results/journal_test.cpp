// SPDX-License-Identifier: Apache-2.0
// Results derived from journals: of launches that were killed at any byte, ran at the same time,
// crashed, or were replaced.
#include "results/journal.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/io/whole_file.hpp>

#include "bench/results/results_support.hpp"
#include "expect_error.hpp"
#include "temporary_directory.hpp"

namespace tessera::bench {
namespace {

using Json = nlohmann::json;
using Random = std::mt19937;

std::string text_of(const Json& line) { return line.dump() + "\n"; }

/// The end of a round of a measured case, whose seconds tell the launch and the round.
End end_of(const std::string& id, const std::string& launch, Size round, bool is_last) {
  End end{id, round, "2026-11-20T14:03:12Z", 1};
  end.last = is_last;
  const double seconds = 1 + static_cast<double>(launch.back() - 'A') + 0.01 * double(round);
  end.block = {launch, static_cast<double>(round), seconds, {1, 1}};
  end.steps = {seconds, seconds};
  if (round > 0) return end;
  end.result = fake_result({});
  end.result->id = id;
  end.result->launch = launch;
  end.result->rounds.clear();
  end.result->compute->flops_per_step = 1e9;
  return end;
}

End failure_of(const std::string& id, const std::string& launch) {
  End end{id, 0, "2026-11-20T14:03:12Z", 1};
  end.last = true;
  end.result = fake_result({.status = "failed"});
  end.result->id = id;
  end.result->launch = launch;
  return end;
}

CaseHistory history_of_texts(const std::vector<std::pair<std::string, std::string>>& texts,
                             const std::string& id = "a") {
  Journals journals;
  for (const auto& [launch, text] : texts) journals.add(launch, text, launch);
  return history_of(journals, id);
}

const std::string first_line = text_of(Chosen{{"a", "b"}, {}});
std::string round_text(const std::string& launch, Size round, bool is_last = false) {
  return text_of(Begin{"a", round}) + text_of(end_of("a", launch, round, is_last));
}

TEST(Journals, ABeginWithoutAnEndIsACrash) {
  const std::string whole = first_line + round_text("A", 0) + round_text("A", 1, true);
  const CaseHistory done = history_of_texts({{"A", whole}});
  EXPECT_EQ(done.result.status, "ok");
  EXPECT_EQ(done.result.rounds.size(), 2u);
  EXPECT_EQ(done.result.launches, 1);
  EXPECT_EQ(done.result.crashes, 0);
  const CaseHistory none = history_of_texts({{"A", first_line + text_of(Begin{"a", 0})}});
  EXPECT_EQ(none.result.status, "pending");
  EXPECT_EQ(none.result.crashes, 1);
  const CaseHistory later =
      history_of_texts({{"A", first_line + round_text("A", 0) + text_of(Begin{"a", 1})}});
  EXPECT_EQ(later.result.status, "ok") << "the complete round counts";
  EXPECT_EQ(later.result.launches, 0);
  EXPECT_EQ(later.result.crashes, 1);
}

// Whatever the byte at which a launch dies, its complete lines count, and nothing else.
TEST(Journals, AreReadUpToTheLastWholeLine) {
  const std::string text = first_line + round_text("A", 0) + round_text("A", 1, true);
  for (std::size_t bytes = 0; bytes <= text.size(); ++bytes) {
    const std::string left = text.substr(0, bytes);
    const auto lines = std::count(left.begin(), left.end(), '\n');
    const CaseHistory history = history_of_texts({{"A", left}});
    ASSERT_EQ(std::ssize(history.result.rounds), std::max<std::ptrdiff_t>(lines - 1, 0) / 2);
    ASSERT_EQ(history.result.crashes, lines == 2 || lines == 4 ? 1 : 0) << lines;
    ASSERT_EQ(history.result.status, lines < 3 ? "pending" : "ok");
  }
}

TEST(Journals, TwoLaunchesOnOneCaseGiveMoreRounds) {
  const std::string a = first_line + round_text("A", 0) + round_text("A", 1, true);
  const std::string b = first_line + round_text("B", 0) + round_text("B", 1, true);
  const CaseHistory both = history_of_texts({{"A", a}, {"B", b}});
  EXPECT_EQ(both.result.launches, 2);
  EXPECT_EQ(both.result.launch, "B");
  ASSERT_EQ(both.result.rounds.size(), 4u);
  EXPECT_EQ(both.result.rounds[0].launch, "A");
  EXPECT_EQ(both.result.rounds[3].launch, "B");
  EXPECT_EQ(both.steps.size(), 4u);
  EXPECT_EQ(history_of_texts({{"B", b}, {"A", a}}).steps, both.steps);
}

TEST(Journals, ALaunchMayReplaceOthers) {
  const std::string a = first_line + text_of(Begin{"a"}) + text_of(failure_of("a", "A"));
  EXPECT_EQ(history_of_texts({{"A", a}}).result.status, "failed");
  const std::string begun = first_line + text_of(Begin{"a", 0, {"A"}});
  const CaseHistory pending = history_of_texts({{"A", a}, {"B", begun}});
  EXPECT_EQ(pending.result.status, "pending");
  EXPECT_EQ(pending.launches, (std::vector<std::string>{"B"}));
  const std::string b = begun + text_of(end_of("a", "B", 0, true));
  EXPECT_EQ(history_of_texts({{"A", a}, {"B", b}}).result.rounds.size(), 1u);
}

TEST(Journals, CountCrashesSinceALaunchWithoutGiveUp) {
  const std::string crash = text_of(Begin{"a"});
  const std::string again = text_of(Chosen{{"a"}, 2});
  EXPECT_EQ(history_of_texts({{"A", first_line + crash}, {"B", again + crash}}).result.crashes, 2);
  EXPECT_EQ(history_of_texts({{"A", first_line + crash}, {"B", first_line}}).result.crashes, 0)
      << "a new job tries each case again";
  EXPECT_EQ(history_of_texts({{"A", first_line + crash}, {"B", text_of(Chosen{{"b"}, {}})}})
                .result.crashes,
            1)
      << "another case";
}

// A launch that gives a case up while another one runs it does not know that it will end well.
TEST(Journals, ACaseThatWasGivenUpTooEarlyIsMeasured) {
  End given_up = failure_of("a", "B");
  given_up.give_up = 1;
  const std::string b = text_of(Chosen{{"b"}, 1}) + text_of(given_up);
  const std::string running = first_line + text_of(Begin{"a"});
  EXPECT_EQ(history_of_texts({{"A", running}, {"B", b}}).result.status, "failed");
  const CaseHistory ended =
      history_of_texts({{"A", running + text_of(end_of("a", "A", 0, true))}, {"B", b}});
  EXPECT_EQ(ended.result.status, "ok");
}

// The rank that ends a launch has a journal of its own.
TEST(Journals, AnEndMayStandInTheJournalOfAnotherRank) {
  const CaseHistory history =
      history_of_texts({{"A", text_of(Chosen{{"a"}, 3}) + text_of(Begin{"a"})},
                        {"A", text_of(Chosen()) + text_of(failure_of("a", "A"))}});
  EXPECT_EQ(history.result.status, "failed");
  EXPECT_EQ(history.result.crashes, 0);
}

TEST(Journals, KeepReferences) {
  const auto text = [](Size asked) {
    End end{"reference-1"};
    end.reference = Reference{{{1.0, 2.0}, {}}, "data=1", 1, asked, 0.5};
    return text_of(Begin{"reference-1"}) + text_of(end);
  };
  Journals journals;
  journals.add("A", text_of(Chosen{{"a"}, 1}) + text(4), "A");
  journals.add("B", text_of(Chosen{{"a"}, 1}) + text(2) + text_of(Begin{"reference-2"}), "B");
  EXPECT_EQ(reference_of(journals, "reference-1")->asked_steps, 4);
  EXPECT_FALSE(reference_of(journals, "reference-2"));
  Case mine, other;
  mine.id = "a";
  other.id = "b";
  EXPECT_EQ(crashes_of_reference(journals, "reference-2", {&mine}), 1);
  EXPECT_EQ(crashes_of_reference(journals, "reference-2", {&other}), 0) << "of another job";
  journals.add("C", text_of(Chosen{{"a"}, 1}) + text_of(Begin{"reference-1", 0, {"A"}}), "C");
  EXPECT_EQ(reference_of(journals, "reference-1")->asked_steps, 2) << "A is replaced";
}

TEST(Journals, NameFileAndLineOfWhatIsDamaged) {
  const auto said = [](const std::string& text) {
    return test::error_of([&] { Journals().add("A", text, "A.journal"); });
  };
  EXPECT_EQ(said("{}\n"), "A.journal:1: runs: is missing; it must be a list");
  EXPECT_EQ(said(first_line + R"({"begin": 3, "round": 0, "instead_of": []})" + "\n"),
            "A.journal:2: begin = 3: must be a text");
  EXPECT_TRUE(said(first_line + "{\n").starts_with("A.journal:2: is not a JSON document: "));
  Json line = end_of("a", "A", 0, true);
  line["block"] = nullptr;
  EXPECT_EQ(said(text_of(line)), "A.journal:1: block = null: must be an object");
  line = end_of("a", "A", 0, true);
  line["result"]["id"] = "b";
  EXPECT_EQ(said(text_of(line)), "A.journal:1: result.id = \"b\": must be a");
  line = end_of("a", "A", 1, true);
  line["steps"] = {1, nullptr};
  EXPECT_EQ(said(text_of(line)), "A.journal:1: steps[1] = null: must be a number from 0 to 1e+100");
}

TEST(Journals, LinesAreOnTheDiskAndFilesAreNotShared) {
  const test::TemporaryDirectory directory;
  Journal journal(directory.path(), "A", Chosen{{"a"}, {}});
  journal.append(Begin{"a"});
  EXPECT_EQ(history_of(read_journals(directory.path()), "a").result.crashes, 1);
  EXPECT_THROW(Journal(directory.path(), "A", {}), Error);
  journal.append(end_of("a", "A", 0, true));
  EXPECT_EQ(history_of(read_journals(directory.path()), "a").result.status, "ok");
  EXPECT_EQ(read_journals(directory.path()).bytes, journal_bytes(directory.path()));
}

TEST(Journals, ResultsOfAnOlderReleaseAreNamed) {
  const test::TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() / "launches");
  directory.write("launches/20260101T000000Z-node-1.json", "{}");
  EXPECT_NE(test::error_of([&] { read_journals(directory.path()); }).find("tessera-bench 0.2"),
            std::string::npos);
}

/// A launch of the random test: lines of cases a and b, of which the last may be torn.
struct FakeLaunch {
  std::string name;
  std::vector<std::string> lines;
  std::size_t whole = 0;  ///< lines that were written
  bool is_torn = false;

  std::string text() const {
    std::string text;
    for (std::size_t i = 0; i < whole; ++i) text += lines[i];
    if (is_torn && whole < lines.size()) text += lines[whole].substr(0, lines[whole].size() / 2);
    return text;
  }
};

FakeLaunch random_launch(const std::string& name, Random& random) {
  FakeLaunch launch{name, {text_of(Chosen{{"a", "b"}, 9})}};
  const Size rounds = 1 + static_cast<Size>(random() % 4);
  for (Size round = 0; round < rounds; ++round)
    for (const char* id : {"a", "b"}) {
      launch.lines.push_back(text_of(Begin{id, round}));
      launch.lines.push_back(text_of(end_of(id, name, round, round + 1 == rounds)));
    }
  const bool dies = random() % 2 == 0;
  launch.whole = dies ? random() % launch.lines.size() : launch.lines.size();
  launch.is_torn = dies && random() % 2 == 0;
  return launch;
}

// Counted by hand: the rounds of a case are the ends that were written, its crashes the begins
// that have none. Neither the order of the files nor that in which launches wrote their lines
// matters, and no later line takes a round away.
TEST(Journals, RandomLaunchesGiveTheRoundsThatTheyCompleted) {
  Random random(56);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<FakeLaunch> launches;
    for (std::size_t i = 0; i < 1 + random() % 4; ++i)
      launches.push_back(random_launch(std::string(1, static_cast<char>('A' + i)), random));
    std::vector<std::pair<std::string, std::string>> texts;
    Size rounds = 0, crashes = 0, finished = 0;
    for (const FakeLaunch& launch : launches) {
      texts.emplace_back(launch.name, launch.text());
      Size begun = 0, ended = 0;
      for (std::size_t i = 0; i < launch.whole; ++i) {
        const Json line = Json::parse(launch.lines[i]);
        if (line.value("begin", "") == "a") ++begun;
        if (line.value("end", "") != "a") continue;
        ++ended;
        finished += line.at("last").get<bool>();
      }
      rounds += ended;
      crashes += begun - ended;
    }
    std::shuffle(texts.begin(), texts.end(), random);
    const CaseHistory history = history_of_texts(texts);
    ASSERT_EQ(std::ssize(history.result.rounds), rounds) << trial;
    ASSERT_EQ(std::ssize(history.steps), rounds) << trial;
    ASSERT_EQ(history.result.crashes, crashes) << trial;
    ASSERT_EQ(history.result.launches, finished) << trial;
    ASSERT_EQ(history.result.status, rounds > 0 ? "ok" : "pending") << trial;
    // What is derived while launches write is a part of what is derived at the end.
    for (auto& [name, text] : texts) text.resize(random() % (text.size() + 1));
    ASSERT_LE(std::ssize(history_of_texts(texts).result.rounds), rounds) << trial;
  }
}

// The numbers of a study are those of its rounds, however they came about.
TEST(Journals, StepTimesFollowFromTheRounds) {
  Journals journals;
  std::string text = first_line;
  for (Size round = 0; round < 8; ++round) text += round_text("A", round, round == 7);
  journals.add("A", text, "A");
  StudyCases study = study_of(fake_results({{}}));
  study.cases[0].id = "a";
  const Results results = derive_results(study, journals);
  const CaseResult& result = results.cases.at(0);
  std::vector<double> steps;
  for (const auto& block : results.steps.at("a"))
    steps.insert(steps.end(), block.begin(), block.end());
  const Statistics expected = statistics_of(result.rounds, steps);
  EXPECT_EQ(steps.size(), 16u);
  EXPECT_DOUBLE_EQ(result.step_seconds->median, expected.median);
  EXPECT_DOUBLE_EQ(*result.step_seconds->ci95_low, *expected.ci95_low);
  EXPECT_DOUBLE_EQ(*result.samples_per_second, 64 / expected.median);
  EXPECT_DOUBLE_EQ(*result.compute->flops_per_second, 1e9 / expected.median);
  const Summary summary = summarize_study(results);
  EXPECT_EQ(summary.machine.rounds, 8);
  EXPECT_EQ(summary.result, "PASS");
}

}  // namespace
}  // namespace tessera::bench
