// SPDX-License-Identifier: Apache-2.0
// Meshes and options that a fixed order of sums does not allow.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/config/to_plan_input.hpp>

#include "engine/strategy_support.hpp"

namespace tessera {
namespace {

using train_test::Axes;
using train_test::Experiment;
using train_test::on_mesh;

std::string rejection(const std::function<void(Experiment&)>& change) {
  Experiment one = train_test::primes(29);
  one.model.mlp.widths = {3, 8, 10};
  one.training.numerics.reproducible = true;
  change(one);
  try {
    const Config config{one.model, one.data, one.training, {}};
    const DistributedConfig& distributed = one.training.distributed;
    std::vector<Axis> axes;
    for (std::size_t a = 0; a < distributed.mesh_shape.size(); ++a)
      axes.push_back({distributed.mesh_axis_names[a], distributed.mesh_shape[a]});
    make_plan(plan_input(config, MeshShape(axes)));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ReproducibleRules, MeshesThatSplitGrainsAreRejected) {
  const auto with = [](const Axes& axes) {
    return [axes](Experiment& one) { one = on_mesh(one, axes, "data"); };
  };
  EXPECT_EQ(rejection(with({{"data", 8}})), "");
  EXPECT_EQ(rejection(with({{"data", 3}})),
            "numerics.reproducible = true: needs a power of two of ranks of the batch, not 3; the "
            "nearest are 2 and 4");
  EXPECT_NE(rejection(with({{"context", 2}})), "");
  EXPECT_EQ(rejection(with({{"data", 16}})),
            "numerics.grains = 8: must be at least 16, the number of ranks of the batch");
  EXPECT_EQ(rejection([](Experiment& one) {
              one = on_mesh(one, {{"data", 2}}, "data");
              one.training.microbatches = 2;
            }),
            "training.microbatches = 2: must be 4 with numerics.reproducible, or absent: each of "
            "the 4 grains of a rank is a microbatch");
  EXPECT_EQ(rejection([](Experiment& one) {
              one = on_mesh(one, {{"data", 2}}, "data");
              one.training.microbatches = 4;
            }),
            "");
  EXPECT_EQ(rejection(with({{"model", 8}})),
            "numerics.model_grains = 4: must be a multiple of the 8 ranks of the mesh axis model");
  EXPECT_EQ(rejection([](Experiment& one) {
              one.training.numerics.grains = 6;
              one = on_mesh(one, {{"data", 1}}, "data");
            }),
            "numerics.grains = 6: must be a power of two");
  EXPECT_EQ(
      rejection([&](Experiment& one) {
        one.model.mlp.widths = {3, 10, 4};
        one = on_mesh(one, {{"model", 4}}, "data");
      }),
      "numerics.reproducible = true: splits the 10 columns of layer1/product into 2 blocks, "
      "which 4 ranks of the mesh axis model do not divide; use at most 2 ranks, or a multiple "
      "of 4 columns");
}

}  // namespace
}  // namespace tessera
