// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/optim/optimizer_config.hpp>
#include <tessera/optim/schedule.hpp>

namespace tessera {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The message of the error, or nothing.
template <class Config>
std::string rejection(const Config& config) {
  try {
    validate(config);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

template <class Config>
void expect_rejected(const Config& config, const std::string& key) {
  EXPECT_EQ(rejection(config).substr(0, key.size() + 3), key + " = ");
}

TEST(Validate, DefaultsAndSensibleValuesPass) {
  using enum OptimizerKind;
  EXPECT_EQ(rejection(OptimizerConfig{}), "");
  EXPECT_EQ(rejection(OptimizerConfig{.kind = sgd, .momentum = 0.9, .nesterov = true}), "");
  EXPECT_EQ(rejection(OptimizerConfig{.kind = adamw, .weight_decay = 1e-4}), "");
  EXPECT_EQ(rejection(OptimizerConfig{.kind = rmsprop, .decay = 0.99}), "");
  EXPECT_EQ(rejection(ScheduleConfig{}), "");
  EXPECT_EQ(
      rejection(ScheduleConfig{.kind = ScheduleKind::warmup_cosine, .steps = 5, .warmup_steps = 4}),
      "");
  EXPECT_EQ(rejection(ScheduleConfig{.warmup_steps = 4, .start_factor = 0.1}), "");
  EXPECT_EQ(rejection(ScheduleConfig{
                .kind = ScheduleKind::wsd, .steps = 10, .decay_steps = 6, .warmup_steps = 4}),
            "");
  EXPECT_EQ(rejection(ClipConfig{.global_norm = 1, .value = 0.5}), "");
}

TEST(Validate, OptimizerValuesOutOfRangeAreNamed) {
  using enum OptimizerKind;
  for (double bad : {-0.1, 1.0, nan}) {
    expect_rejected(OptimizerConfig{.kind = sgd, .momentum = bad}, "optimizer.momentum");
    expect_rejected(OptimizerConfig{.beta1 = bad}, "optimizer.beta1");
    expect_rejected(OptimizerConfig{.beta2 = bad}, "optimizer.beta2");
    expect_rejected(OptimizerConfig{.kind = rmsprop, .decay = bad}, "optimizer.decay");
  }
  for (double bad : {-1.0, 0.0, nan}) {
    expect_rejected(OptimizerConfig{.epsilon = bad}, "optimizer.epsilon");
  }
  for (double bad : {-1.0, nan}) {
    expect_rejected(OptimizerConfig{.kind = adamw, .weight_decay = bad}, "optimizer.weight_decay");
  }
}

TEST(Validate, AValueThatTheOptimizerWouldIgnoreIsRejected) {
  using enum OptimizerKind;
  expect_rejected(OptimizerConfig{.kind = adam, .momentum = 0.9}, "optimizer.momentum");
  expect_rejected(OptimizerConfig{.kind = adam, .weight_decay = 0.1}, "optimizer.weight_decay");
  EXPECT_EQ(rejection(OptimizerConfig{.kind = adamw, .weight_decay_on = WeightDecayOn::kernels}),
            "optimizer.weight_decay_on = \"kernels\": needs optimizer.weight_decay > 0");
  expect_rejected(OptimizerConfig{.kind = sgd, .beta1 = 0.8}, "optimizer.beta1");
  expect_rejected(OptimizerConfig{.kind = sgd, .epsilon = 1e-3}, "optimizer.epsilon");
  expect_rejected(OptimizerConfig{.kind = adam, .decay = 0.8}, "optimizer.decay");
  expect_rejected(OptimizerConfig{.kind = sgd, .nesterov = true}, "optimizer.nesterov");
}

TEST(Validate, ScheduleValuesOutOfRangeOrIgnoredAreNamed) {
  using enum ScheduleKind;
  EXPECT_EQ(rejection(ScheduleConfig{.kind = cosine}),
            "schedule.kind = \"cosine\": needs schedule.steps, its length in steps");
  expect_rejected(ScheduleConfig{.kind = cosine, .steps = -3}, "schedule.steps");
  expect_rejected(ScheduleConfig{.steps = 10}, "schedule.steps");
  expect_rejected(ScheduleConfig{.kind = step, .steps = 10, .rate = 0}, "schedule.rate");
  expect_rejected(ScheduleConfig{.kind = exponential, .steps = 10, .rate = nan}, "schedule.rate");
  expect_rejected(ScheduleConfig{.kind = cosine, .steps = 10, .rate = 0.5}, "schedule.rate");
  expect_rejected(ScheduleConfig{.kind = linear, .steps = 10, .end_factor = -1},
                  "schedule.end_factor");
  expect_rejected(ScheduleConfig{.kind = step, .steps = 10, .end_factor = 0.1},
                  "schedule.end_factor");
  expect_rejected(ScheduleConfig{.kind = cosine, .steps = 10, .warmup_steps = 10},
                  "schedule.warmup_steps");
  expect_rejected(ScheduleConfig{.warmup_steps = -1}, "schedule.warmup_steps");
  expect_rejected(ScheduleConfig{.start_factor = 0.1}, "schedule.start_factor");
  expect_rejected(ScheduleConfig{.kind = linear, .steps = 10, .decay_steps = 2},
                  "schedule.decay_steps");
  expect_rejected(ScheduleConfig{.kind = wsd, .steps = 10}, "schedule.kind");
  EXPECT_EQ(
      rejection(ScheduleConfig{.kind = wsd, .steps = 10, .decay_steps = 7, .warmup_steps = 4}),
      "schedule.decay_steps = 7: must be from 1 to 6, schedule.steps less "
      "schedule.warmup_steps");
  expect_rejected(ScheduleConfig{.kind = warmup_cosine, .steps = 10}, "schedule.kind");
  expect_rejected(ScheduleConfig{.kind = warmup_cosine, .steps = 10, .warmup_steps = 10},
                  "schedule.warmup_steps");
}

TEST(Validate, ClipLimitsMustBePositive) {
  for (double bad : {-1.0, 0.0, nan, std::numeric_limits<double>::infinity()}) {
    expect_rejected(ClipConfig{.global_norm = bad, .value = {}}, "clip.global_norm");
    expect_rejected(ClipConfig{.global_norm = {}, .value = bad}, "clip.value");
  }
}

}  // namespace
}  // namespace tessera
