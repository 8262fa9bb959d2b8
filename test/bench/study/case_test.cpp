// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/plan/layout/strategy.hpp>

#include "study/study.hpp"

namespace tessera::bench {
namespace {

Study study_of(std::vector<Grid> grids) {
  Study study;
  study.base.model.mlp.widths = {4, 8, 1};
  study.base.training.batch_size = 32;
  study.base.data.samples = 256;
  study.grids = std::move(grids);
  return study;
}

std::vector<std::string> labels(const std::vector<Case>& cases) {
  std::vector<std::string> found;
  for (const Case& point : cases) found.push_back(point.label);
  return found;
}

TEST(Cases, AreTheProductOfTheFactors) {
  const auto cases = make_cases(study_of({{{"ranks", {1, 2}}, {"global_batch", {32, 64}}}}));
  EXPECT_EQ(labels(cases),
            (std::vector<std::string>{"strategy=data mesh=data=1 global_batch=32 microbatches=1",
                                      "strategy=data mesh=data=1 global_batch=64 microbatches=1",
                                      "strategy=data mesh=data=2 global_batch=32 microbatches=1",
                                      "strategy=data mesh=data=2 global_batch=64 microbatches=1"}));
  EXPECT_EQ(cases[3].config.training.batch_size, 64);
  EXPECT_EQ(cases[3].config.training.distributed.world_size, 2);
  EXPECT_EQ(cases[3].ranks(), 2);
  for (const Case& point : cases) EXPECT_FALSE(point.skip_reason) << *point.skip_reason;
}

TEST(Cases, BatchPerRankGrowsWithTheRanks) {
  const auto cases = make_cases(study_of({{{"ranks", {1, 4}}, {"batch_per_rank", {16}}}}));
  EXPECT_EQ(cases[0].batch(), 16);
  EXPECT_EQ(cases[1].batch(), 64);
  EXPECT_EQ(cases[1].factors.at("batch_per_rank"), 16);
}

// Otherwise the batch of weak scaling would exceed the data set.
TEST(Cases, SamplesFollowTheBatchUnlessTheStudySaysHowMany) {
  const std::vector<Grid> grids{{{"ranks", {1}}, {"global_batch", {32, 128, 512}}}};
  const auto samples = [](const std::vector<Case>& cases) {
    std::vector<Size> found;
    for (const Case& point : cases) found.push_back(point.config.data.samples);
    return found;
  };
  Study study = study_of(grids);
  EXPECT_EQ(samples(make_cases(study)), (std::vector<Size>{256, 256, 1024}));
  study.gives_samples = true;
  EXPECT_EQ(samples(make_cases(study)), (std::vector<Size>{256, 256, 256}));
  Grid varied = grids[0];
  varied["data.samples"] = {600};
  EXPECT_EQ(samples(make_cases(study_of({varied}))), (std::vector<Size>{600, 600, 600}));
}

TEST(Cases, TheShippedWeakStudyGoesOnBeyondItsDataSet) {
  Study study = load_study({TESSERA_INPUTS "/weak_scaling.toml"});
  study.grids.at(0)["ranks"] = {16, 32};
  for (const Case& point : make_cases(study)) EXPECT_FALSE(point.skip_reason) << *point.skip_reason;
  EXPECT_EQ(make_cases(study).back().batch(), 32 * 256);
  study = load_study({TESSERA_INPUTS "/weak_scaling.toml", false, {"data.samples=4096"}});
  study.grids.at(0)["ranks"] = {32};
  EXPECT_TRUE(make_cases(study).at(0).skip_reason) << "it was asked for";
}

// One rank reduces nothing, so overlap makes no difference.
TEST(Cases, FactorsThatDoNotApplyAreDropped) {
  const auto cases =
      make_cases(study_of({{{"ranks", {1, 2}}, {"distributed.overlap", {false, true}}}}));
  ASSERT_EQ(cases.size(), 3u);
  EXPECT_EQ(cases[0].ranks(), 1);
  EXPECT_EQ(cases[0].factors.count("distributed.overlap"), 0u);
  EXPECT_EQ(cases[1].factors.at("distributed.overlap"), false);
  EXPECT_EQ(cases[2].factors.at("distributed.overlap"), true);
  EXPECT_TRUE(cases[2].config.training.distributed.overlap);

  const MeshShape four({{"data", 4}}), model({{"model", 4}});
  EXPECT_FALSE(applies("distributed.prefetch", "data", four));
  EXPECT_TRUE(applies("distributed.prefetch", "fsdp", four));
  EXPECT_FALSE(applies("distributed.overlap", "tensor", model));
  EXPECT_TRUE(applies("distributed.sequence_parallel", "tensor", model));
  EXPECT_TRUE(applies("model.dtype", "data", four));
}

TEST(Cases, DuplicatesOfSeveralGridsAreMerged) {
  const auto cases = make_cases(study_of(
      {{{"ranks", {1, 2}}}, {{"mesh", {"data=2"}}}, {{"ranks", {2}}, {"microbatches", {1, 2}}}}));
  EXPECT_EQ(cases.size(), 3u);
}

TEST(Cases, IdsAreReadableUniqueAndStable) {
  const auto make = [] {
    return make_cases(study_of({{{"ranks", {1, 2, 4}},
                                 {"microbatches", {1, 2}},
                                 {"distributed.overlap", {false, true}}}}));
  };
  std::set<std::string> ids;
  for (const Case& point : make()) ids.insert(point.id);
  EXPECT_EQ(ids.size(), 10u);
  const Case last = make().back();
  EXPECT_TRUE(last.id.starts_with("data-data4-b32-m2-")) << last.id;
  EXPECT_EQ(last.id, make().back().id);
}

TEST(Cases, InvalidCasesAreSkippedWithTheReason) {
  Study study = study_of({{{"ranks", {1}}, {"global_batch", {32, 512}}, {"strategy", {"data"}}}});
  study.gives_samples = true;
  const auto cases = make_cases(study);
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_FALSE(cases[0].skip_reason);
  EXPECT_TRUE(
      cases[1].skip_reason->starts_with("training.batch_size = 512: must be at most data.samples"));
  study.grids = {{{"ranks", {1}}, {"strategy", {"dada"}}}};
  EXPECT_THROW(make_cases(study), ConfigError);
}

TEST(Cases, UnsupportedSettingsAreSkipped) {
  Study study = study_of({{{"ranks", {1}}}});
  study.base.training.check_replicas_every = 2;
  EXPECT_TRUE(make_cases(study).at(0).skip_reason);
  study.base.training.check_replicas_every = 0;
  study.base.checkpoint.init_from = "model.safetensors";
  EXPECT_TRUE(make_cases(study).at(0).skip_reason);
  study.base.checkpoint = {};
  study.base.data.validation_samples = 8;
  study.base.training.patience = 2;
  EXPECT_TRUE(make_cases(study).at(0).skip_reason);
  study = study_of({{{"ranks", {1}}}});
  EXPECT_FALSE(make_cases(study).at(0).skip_reason);
  study.base.checkpoint.directory = "saves";
  EXPECT_FALSE(make_cases(study).at(0).skip_reason);
  study.base.checkpoint.every_steps = 3;
  EXPECT_TRUE(make_cases(study).at(0).skip_reason.value_or("").starts_with(
      "checkpoint.every_steps is not supported in studies"));
}

TEST(Cases, ExclusionsGiveTheirReason) {
  Study study = study_of({{{"ranks", {1, 2, 4}}}});
  study.exclusions = {{"too slow", {{"ranks", {2, 4}}, {"strategy", {"data"}}}}};
  const auto cases = make_cases(study);
  EXPECT_FALSE(cases[0].skip_reason);
  EXPECT_EQ(cases[1].skip_reason.value_or(""), "too slow");
  EXPECT_EQ(cases[2].skip_reason.value_or(""), "too slow");
}

TEST(Cases, ExclusionsKnowShortNames) {
  Study study =
      study_of({{{"ranks", {2}}, {"threads", {1, 2}}, {"mixed_precision", {"no", "bf16"}}}});
  study.exclusions = {{"too many", {{"threads", {2}}}},
                      {"too few", {{"mixed_precision", {"bf16"}}}}};
  std::vector<std::string> reasons;
  for (const Case& of : make_cases(study)) reasons.push_back(of.skip_reason.value_or(""));
  std::ranges::sort(reasons);
  EXPECT_EQ(reasons, (std::vector<std::string>{"", "too few", "too many", "too many"}));
}

TEST(Cases, ContradictoryGridsAreErrors) {
  const auto expect_error = [](const Grid& grid) {
    EXPECT_THROW(make_cases(study_of({grid})), Error);
  };
  expect_error({{"global_batch", {1}}});
  expect_error({{"meshes_over", {{"data"}}}});
  expect_error({{"ranks", {"two"}}});
  expect_error({{"ranks", {0}}});
  expect_error({{"mesh", {"data=-1"}}});
  expect_error({{"mesh", {"data=3"}}, {"ranks", {2}}});
  expect_error({{"ranks", {2}}, {"global_batch", {8}}, {"batch_per_rank", {4}}});
  expect_error({{"ranks", {2}}, {"model.dtype", {"float23"}}});
}

TEST(Cases, MeshesOverAxesAreAllFactorisations) {
  const auto meshes = factorisations(8, {"data", "fsdp", "model"});
  EXPECT_EQ(meshes.size(), 10u);
  std::set<std::string> texts;
  for (const MeshShape& mesh : meshes) {
    EXPECT_EQ(mesh.num_ranks(), 8);
    texts.insert(mesh.to_string());
  }
  EXPECT_EQ(texts.size(), 10u);
  EXPECT_EQ(texts.count("data=2,fsdp=2,model=2"), 1u);
  EXPECT_EQ(factorisations(1, {"data", "model"}).at(0).to_string(), "data=1");
  EXPECT_EQ(factorisations(6, {"data", "model"}).size(), 4u);
  const std::vector<std::string> names{"data", "fsdp", "model"};
  for (const Size ranks : {1, 7, 12, 64, 360, 1009})
    for (std::size_t axes = 1; axes <= 3; ++axes)
      EXPECT_GE(
          most_factorisations(ranks, axes),
          static_cast<double>(factorisations(ranks, {names.begin(), names.begin() + axes}).size()));
}

// The number of cases is checked before they are made.
TEST(Cases, AreNoMoreThanTenThousand) {
  const auto message = [](const Grid& grid) -> std::string {
    try {
      make_cases(study_of({grid}));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  std::vector<nlohmann::json> thousand;
  for (int seed = 0; seed < 1000; ++seed) thousand.push_back(seed);
  EXPECT_EQ(message({{"ranks", {1}},
                     {"model.seed", thousand},
                     {"data.seed", thousand},
                     {"training.batch_size", thousand}}),
            "grid = 1000000000 cases: must be at most 10000 in all");
  const std::string meshes = message(
      {{"ranks", {1 << 30}},
       {"meshes_over", {{"data", "fsdp", "model", "pipeline", "context", "expert", "other"}}}});
  EXPECT_NE(meshes.find("must be at most 10000 in all"), std::string::npos) << meshes;
  EXPECT_EQ(message({{"ranks", {Size{1} << 40}}}),
            "grid.ranks = 1099511627776: must be from 1 to 2,147,483,647");
  EXPECT_EQ(message({{"ranks", {4}}, {"batch_per_rank", {Size{1} << 62}}}),
            "grid.batch_per_rank = 4611686018427387904: is too large for 4 ranks");
}

TEST(Cases, AStrategyHasItsUsualMesh) {
  EXPECT_EQ(usual_mesh("data", 4).to_string(), "data=4");
  EXPECT_EQ(usual_mesh("fsdp", 4).to_string(), "fsdp=4");
  EXPECT_EQ(usual_mesh("tensor", 4).to_string(), "model=4");
  EXPECT_EQ(usual_mesh("hybrid", 8).to_string(), "data=2,fsdp=4");
  EXPECT_EQ(usual_mesh("hybrid", 2).to_string(), "data=1,fsdp=2");
  EXPECT_EQ(usual_mesh("hybrid", 1).to_string(), "data=1,fsdp=1");
  EXPECT_EQ(usual_mesh("hybrid", Topology::blocks(8, 2)).to_string(), "data=4,fsdp=2");
  EXPECT_EQ(usual_mesh("hybrid", Topology::blocks(8, 8)).to_string(), "data=2,fsdp=4");
}

// A case has the nodes of the first ranks of the launch; a larger case has nodes like them.
TEST(Cases, TakeMeshSizesFromTheNodes) {
  Study study = study_of({{{"ranks", {2, 4, 8}}, {"mesh", {"data=nodes,fsdp=per_node"}}}});
  const auto meshes = [&](const std::optional<Topology>& launch) {
    std::vector<std::string> found;
    for (const Case& point : make_cases(study, launch)) found.push_back(point.mesh.to_string());
    return found;
  };
  EXPECT_EQ(meshes(Topology::blocks(4, 2)),
            (std::vector<std::string>{"data=1,fsdp=2", "data=2,fsdp=2", "data=4,fsdp=2"}));
  EXPECT_EQ(make_cases(study, Topology::blocks(4, 2))[1].topology.num_nodes(), 2);
  EXPECT_EQ(meshes(Topology::blocks(3, 3)),
            (std::vector<std::string>{"data=1,fsdp=2", "data=1,fsdp=4", "data=1,fsdp=8"}))
      << "nodes of three do not fit";
  EXPECT_THROW(make_cases(study), ConfigError);
  study.base.training.distributed.num_processes_per_node = 4;
  EXPECT_EQ(meshes({}),
            (std::vector<std::string>{"data=1,fsdp=2", "data=1,fsdp=4", "data=2,fsdp=4"}));
  // A launch that is too small for a case does not determine its nodes.
  EXPECT_EQ(meshes(Topology::blocks(2, 1)),
            (std::vector<std::string>{"data=2,fsdp=1", "data=1,fsdp=4", "data=2,fsdp=4"}));
}

TEST(Cases, MayDependOnTheNodes) {
  EXPECT_TRUE(
      depends_on_nodes(study_of({{{"ranks", {4}}, {"mesh", {"data=nodes,fsdp=per_node"}}}})));
  EXPECT_TRUE(depends_on_nodes(study_of({{{"ranks", {8}}, {"strategy", {"data", "hybrid"}}}})));
  EXPECT_FALSE(depends_on_nodes(study_of({{{"ranks", {1, 8}}, {"strategy", {"data", "fsdp"}}}})));
  EXPECT_FALSE(
      depends_on_nodes(study_of({{{"mesh", {"data=2,fsdp=2"}}, {"strategy", {"hybrid"}}}})));
}

}  // namespace
}  // namespace tessera::bench
