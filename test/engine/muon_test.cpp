// SPDX-License-Identifier: Apache-2.0
// Every layout of muon under every strategy on every mesh of this launch.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/plan/orthogonalization.hpp>

#include "engine/experiment_models.hpp"

namespace tessera {
namespace {

using train_test::Experiment;

/// Matrices of different sizes, wide and tall, in buckets of one to three.
Experiment small_mlp(MuonScale scale) {
  Experiment setup = train_test::mlp();
  setup.model.mlp.widths = {3, 11, 13, 7, 9, 5};
  setup.training.learning_rate = 0.02;
  setup.training.optimizer = {
      .kind = OptimizerKind::muon, .weight_decay = 0.5, .muon_scale = scale};
  setup.training.distributed.bucket_bytes = 2500;
  return setup;
}

/// Calls f for each strategy, mesh and layout that act.
template <class F>
void for_layouts(const Experiment& base, const F& f) {
  train_test::for_strategies(base, [&](Experiment setup, const std::string& what) {
    const bool shards = row_of(setup.training.distributed.strategy).shards.moments;
    for (const MuonLayout layout : {MuonLayout::gather, MuonLayout::owner, MuonLayout::exchange}) {
      if (layout != MuonLayout::gather && !shards) continue;
      setup.training.distributed.muon_layout = layout;
      SCOPED_TRACE(what + ", " + std::string(name_of(layout)));
      f(setup);
    }
  });
}

TEST(Muon, TrainsLikeOneRankInEveryLayout) {
  int number = 0;
  for_layouts(small_mlp(MuonScale::match_rms), [&](Experiment setup) {
    if (number++ % 2 == 0) return train_test::expect_trains_like_one_rank(setup);
    setup.training.optimizer.moments_type = MomentsType::bf16;
    setup.training.numerics = {true, 8, 4};
    train_test::expect_trains_like_one_rank(train_test::in_type<float>(setup));
  });
}

TEST(Muon, PlansTheFlopsOfAllRanksAndDividesThem) {
  for_layouts(small_mlp(MuonScale::original), [](const Experiment& setup) {
    const Config config{setup.model, setup.data, setup.training, {}};
    const Plan plan = make_plan(
        plan_input(config, resolve_mesh(config, Communicator::world().size()), DeviceTraits{}));
    double flops = 0;
    std::vector<Size> matrices(static_cast<std::size_t>(plan.input.mesh.num_ranks()));
    for (Size rank = 0; rank < plan.input.mesh.num_ranks(); ++rank) {
      const ParameterLayout& layout = plan.stage(rank).parameters;
      for (std::size_t b = 0; b < layout.buckets.size(); ++b)
        for (const Size p : plan_matrices(plan, static_cast<Size>(b), rank).matrices) {
          flops += newton_schulz_flops(layout.parameters[p].shape);
          ++matrices[rank];
        }
    }
    EXPECT_EQ(plan.orthogonalization, flops);
    // FSDP has a bucket for each matrix.
    const auto [least, most] = std::minmax_element(matrices.begin(), matrices.end());
    const bool divides = row_of(plan.input.strategy).shards.parameters &&
                         plan.input.muon_layout == MuonLayout::exchange;
    EXPECT_TRUE(!divides || plan.input.has_stages() || *most - *least <= 1);
  });
}

}  // namespace
}  // namespace tessera
