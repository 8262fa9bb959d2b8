// SPDX-License-Identifier: Apache-2.0
#include <tessera/config/to_plan_input.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

/// A plan that does not see an option would be made as if it were not there.
TEST(PlanInput, CarriesEveryOption) {
  Config config = config_test::tutorial();
  const MeshShape mesh({{"data", 2}, {"model", 2}});
  const PlanInput defaults = plan_input(config, mesh);
  EXPECT_EQ(defaults.mesh, mesh);
  EXPECT_EQ(defaults.strategy, Strategy::data);
  EXPECT_TRUE(defaults.prefetch && defaults.reshard_after_forward && defaults.keep_last_unit);
  EXPECT_FALSE(defaults.sequence_parallel || defaults.check_finite || defaults.overlap);
  EXPECT_FALSE(defaults.clips_by_value || defaults.clips_by_norm);
  EXPECT_EQ(defaults.check_replicas_every, 0);
  EXPECT_TRUE(defaults.parameter_specs.empty());

  const auto with = [&](const std::function<void(TrainingConfig&)>& change) {
    Config changed = config;
    change(changed.training);
    return plan_input(changed, mesh);
  };
  EXPECT_EQ(with([](auto& t) { t.distributed.strategy = "zero2"; }).strategy, Strategy::zero2);
  EXPECT_FALSE(with([](auto& t) { t.distributed.prefetch = false; }).prefetch);
  EXPECT_FALSE(
      with([](auto& t) { t.distributed.reshard_after_forward = false; }).reshard_after_forward);
  EXPECT_FALSE(with([](auto& t) { t.distributed.keep_last_unit = false; }).keep_last_unit);
  EXPECT_TRUE(with([](auto& t) { t.distributed.sequence_parallel = true; }).sequence_parallel);
  EXPECT_TRUE(with([](auto& t) { t.distributed.overlap = true; }).overlap);
  EXPECT_TRUE(with([](auto& t) { t.check_finite = true; }).check_finite);
  EXPECT_EQ(with([](auto& t) { t.check_replicas_every = 7; }).check_replicas_every, 7);
  EXPECT_EQ(with([](auto& t) { t.distributed.bucket_bytes = 300; }).bucket_bytes, 300);

  const PlanInput by_value = with([](auto& t) { t.clip.value = 1; });
  EXPECT_TRUE(by_value.clips_by_value && !by_value.clips_by_norm);
  const PlanInput by_norm = with([](auto& t) { t.clip.global_norm = 1; });
  EXPECT_TRUE(by_norm.clips_by_norm && !by_norm.clips_by_value);
}

}  // namespace
}  // namespace tessera
