// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/plan/checkpoint_plan.hpp>

#include "plan/plan_support.hpp"

namespace tessera {
namespace {

PlanInput input_on(const std::vector<Axis>& axes, Strategy strategy) {
  PlanInput input;
  input.model = mlp({.widths = {3, 11, 13, 7, 5, 2}});
  input.mesh = MeshShape(axes);
  input.strategy = strategy;
  input.writes_checkpoints = true;
  return input;
}

const std::vector<std::vector<Axis>> meshes_of_checkpoints{
    {{"data", 1}},
    {{"data", 5}},
    {{"fsdp", 7}},
    {{"data", 2}, {"fsdp", 3}},
    {{"fsdp", 3}, {"model", 4}},
    {{"pipeline", 2}, {"data", 3}},
    {{"pipeline", 3}, {"fsdp", 2}, {"model", 2}}};

/// Calls f(plan) for every strategy that a mesh supports.
template <class F>
void for_each_plan(const F& f) {
  for (const std::vector<Axis>& axes : meshes_of_checkpoints)
    for (const Strategy strategy :
         {Strategy::data, Strategy::zero1, Strategy::zero2, Strategy::fsdp, Strategy::hybrid}) {
      const MeshShape mesh(axes);
      if (row_of(strategy).over_fsdp_only && !mesh.find("fsdp")) continue;
      SCOPED_TRACE(std::string(name_of(strategy)) + " on " + mesh.to_string());
      f(make_plan(input_on(axes, strategy)));
    }
}

TEST(CheckpointPlan, EachElementIsWrittenOnceByAllRanksTogether) {
  for_each_plan([](const Plan& plan) {
    const std::vector<CheckpointTensor> tensors = checkpoint_tensors(plan);
    std::vector<std::vector<int>> times;
    for (const CheckpointTensor& tensor : tensors)
      times.emplace_back(static_cast<std::size_t>(num_elements(tensor.shape)));
    Size bytes = 0;
    for (Size rank = 0; rank < plan.input.mesh.num_ranks(); ++rank) {
      bytes += checkpoint_bytes(plan, rank).written;
      for (const CheckpointPart& part : checkpoint_parts(plan, rank)) {
        const Piece& block = part.part.piece;
        const Shape& shape = tensors[part.tensor].shape;
        for (Size i = part.written().begin; i < part.written().end(); ++i) {
          Size place = 0, rest = i, below = num_elements(block.extent);
          for (std::size_t d = 0; d < shape.size(); ++d) {
            below /= block.extent[d];
            place = place * shape[d] + block.offset[d] + rest / below;
            rest %= below;
          }
          ++times[part.tensor][place];
        }
      }
    }
    Size elements = 0;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      EXPECT_EQ(times[t], std::vector<int>(times[t].size(), 1)) << tensors[t].name;
      elements += num_elements(tensors[t].shape);
    }
    EXPECT_EQ(bytes, elements * size_of(DType::float32));
    EXPECT_EQ(elements, 3 * plan.input.model.num_parameters()) << "parameters and two moments";
  });
}

TEST(CheckpointPlan, FilesDoNotDependOnTheMesh) {
  const auto names = [](const Plan& plan) {
    std::vector<std::string> list;
    for (const CheckpointTensor& tensor : checkpoint_tensors(plan)) list.push_back(tensor.name);
    return list;
  };
  const std::vector<std::string> expected =
      names(make_plan(input_on({{"data", 1}}, Strategy::data)));
  EXPECT_EQ(expected.front(), "layer1/kernel");
  EXPECT_EQ(expected.back(), "moment2/layer5/bias");
  for_each_plan([&](const Plan& plan) { EXPECT_EQ(names(plan), expected); });
}

}  // namespace
}  // namespace tessera
