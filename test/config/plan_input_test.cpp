// SPDX-License-Identifier: Apache-2.0
#include <tessera/config/to_plan_input.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

/// A plan without an option would be made as if the option were not set.
TEST(PlanInput, CarriesEveryOption) {
  const auto with = [](const std::function<void(TrainingConfig&)>& change) {
    Config changed = config_test::tutorial();
    change(changed.training);
    return plan_input(changed, MeshShape({{"data", 2}, {"model", 2}}));
  };
  EXPECT_EQ(with([](auto& t) { t.distributed.strategy = Strategy::zero2; }).strategy,
            Strategy::zero2);
  EXPECT_EQ(with([](auto& t) { t.distributed.bucket_bytes = 300; }).bucket_bytes, 300);
  EXPECT_EQ(with([](auto& t) { t.microbatches = 3; }).microbatches, 3);
  const PlanInput by_value = with([](auto& t) { t.clip.value = 1; });
  EXPECT_TRUE(by_value.clips_by_value && !by_value.clips_by_norm);
  const PlanInput by_norm = with([](auto& t) { t.clip.global_norm = 1; });
  EXPECT_TRUE(by_norm.clips_by_norm && !by_norm.clips_by_value);
}

}  // namespace
}  // namespace tessera
