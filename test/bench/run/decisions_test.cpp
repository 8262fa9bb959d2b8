// SPDX-License-Identifier: Apache-2.0
// For random settings of each study, a launch skips the cases that the list skips.
#include <algorithm>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/io/whole_file.hpp>

#include "results/result_parts.hpp"
#include "run/console.hpp"
#include "run/launch.hpp"
#include "run/reference_plan.hpp"

namespace tessera::bench {
namespace {

using Random = std::mt19937;

template <class T>
const T& one_of(const std::vector<T>& values, Random& random) {
  return values[random() % values.size()];
}

std::vector<std::string> shipped_studies() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(TESSERA_INPUTS)) {
    if (entry.path().extension() == ".toml" &&
        read_text(entry.path()).find("\n[[grid]]") != std::string::npos)
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Returns a random value of the type of the setting's default. Most names are invalid for it.
std::string random_value(const Setting& setting, Random& random) {
  static const std::vector<std::string> sizes{"1", "2", "3", "4", "7", "16"},
      numbers{"0.0", "0.5", "1.0", "300.0"}, flags{"true", "false"},
      names{"data",  "fsdp", "relu",          "gelu",         "adamw", "bf16",      "float64",
            "tf32",  "vae",  "transformer",   "residual_mlp", "fno",   "poisson",   "bce",
            "gpipe", "full", "cross_entropy", "zero_bubble",  "flops", "copy_task", "12"};
  const nlohmann::json standard = setting.get({});
  if (standard.is_boolean()) return one_of(flags, random);
  if (standard.is_number_float()) return one_of(numbers, random);
  if (standard.is_number() || standard.is_null()) return one_of(sizes, random);
  if (standard.is_array()) return "[" + one_of(sizes, random) + ", 8]";
  return one_of(names, random);
}

/// Returns an override of this setting, and sometimes of another one.
std::vector<std::string> random_overrides(const Setting& setting, Random& random) {
  const auto assignment = [&](const Setting& set) {
    return set.key + "=" + random_value(set, random);
  };
  // With nodes in the study, the list resolves meshes as a launch does.
  std::vector<std::string> overrides{"distributed.num_processes_per_node=2", assignment(setting)};
  if (random() % 2 == 0) overrides.push_back(assignment(one_of(settings(), random)));
  return overrides;
}

/// Expects that a launch with enough resources skips the cases that the list skips, and can make
/// documents and plans of the others.
void expect_same_decision(const Study& study, const Case& point) {
  constexpr Size many = Size{1} << 20;
  const auto what = select_case(point, {}, {}, study, {.ranks = many}).what;
  EXPECT_EQ(what == Selected::What::skip, point.skip_reason.has_value());
  if (point.skip_reason) {
    const Results results = derive_results({study, {point}}, {});
    EXPECT_EQ(results.cases[0].reason, *point.skip_reason);
    return;
  }
  EXPECT_EQ(what, Selected::What::run);
  EXPECT_GT(new_result(study, point).facts.at("parameters"), 0);
  const ReferencePlan reference = plan_reference(point.config, study.verify, {}, point.ranks());
  plan_of(reference.config, reference.ranks);
}

/// Counts of cases and studies by decision.
struct Tally {
  std::size_t run = 0, skipped = 0, refused = 0;
};

void decide(const StudySource& source, Tally& tally) {
  Study study;
  std::vector<Case> cases;
  try {
    study = load_study(source);
    cases = make_cases(study);
  } catch (const Error& error) {  // of the study, for list and run alike
    EXPECT_EQ(error.code(), ExitCode::usage) << error.what();
    ++tally.refused;
    return;
  }
  const std::string list = case_list(study, cases);
  EXPECT_NE(list.find("cases, "), std::string::npos);
  for (const std::string& line : split_text(list, '\n'))
    EXPECT_LE(line.size(), table_width) << line;
  for (const Case& point : cases) {
    SCOPED_TRACE(point.id);
    expect_same_decision(study, point);
    ++(point.skip_reason ? tally.skipped : tally.run);
  }
}

TEST(Decisions, ListAndLaunchDecideAlike) {
  Random random(34);
  Tally tally;
  const std::vector<std::string> studies = shipped_studies();
  EXPECT_GT(studies.size(), 10U);
  // Each study is tried with a third of the settings, so each setting is tried with several
  // studies.
  for (std::size_t i = 0; i < studies.size(); ++i) {
    SCOPED_TRACE(studies[i]);
    for (std::size_t k = i % 3; k < settings().size(); k += 3) {
      const StudySource source{studies[i], true, random_overrides(settings()[k], random)};
      SCOPED_TRACE(testing::PrintToString(source.overrides));
      try {
        decide(source, tally);
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
  EXPECT_GT(tally.run, 500U);
  EXPECT_GT(tally.skipped, 500U);
  EXPECT_GT(tally.refused, 50U);
}

TEST(Decisions, EveryShippedStudyHasCasesForAnyLaunch) {
  for (const std::string& file : shipped_studies()) {
    // Its plans, of 131,072 ranks, take too long for this test.
    if (file.ends_with("/simulated.toml")) continue;
    SCOPED_TRACE(file);
    const Study study = load_study({file});
    for (const Size ranks : {1, 2, 3, 5, 8}) {
      const std::vector<Case> cases = make_cases(study, Topology::blocks(ranks, ranks));
      EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [&](const Case& point) {
        return select_case(point, {}, {}, study, {ranks}).what == Selected::What::run;
      })) << ranks;
    }
  }
}

}  // namespace
}  // namespace tessera::bench
