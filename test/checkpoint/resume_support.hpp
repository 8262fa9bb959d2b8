// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "checkpoint/checkpoint_support.hpp"
#include "engine/error_everywhere.hpp"

namespace tessera::checkpoint_test {

using train_test::Experiment;

/// The result of a training.
struct End {
  TrainingMetrics metrics;
  std::vector<double> parameters, moments;
};

template <class T>
End run(Experiment setup, const Checkpointing& checkpointing, const std::string& from = "") {
  setup.model.dtype = dtype_of<StateOf<T>>();
  Trainer<T> trainer(setup.model, setup.training, {}, checkpointing);
  if (!from.empty()) trainer.resume(from);
  End end;
  end.metrics = trainer.fit(setup.data);
  end.parameters = train_test::to_host(trainer.gather());
  end.moments = train_test::to_host(trainer.gather(TensorRole::moment));
  EXPECT_EQ(plan_violation(end.metrics), "");
  return end;
}

inline std::string file_of(const SharedDirectory& directory, Size step) {
  return file_of(directory.path(), step);
}

inline void expect_same_end(const End& a, const End& b) {
  EXPECT_EQ(a.metrics.epoch_losses, b.metrics.epoch_losses);
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(a.moments, b.moments);
  ASSERT_EQ(a.metrics.validations.size(), b.metrics.validations.size());
  for (std::size_t i = 0; i < a.metrics.validations.size(); ++i) {
    EXPECT_EQ(a.metrics.validations[i].epoch, b.metrics.validations[i].epoch);
    EXPECT_EQ(a.metrics.validations[i].result.loss, b.metrics.validations[i].result.loss);
  }
}

/// Saves after each step and resumes from each of these checkpoints, or from those of `from`.
template <class T>
void expect_resumes(const Experiment& setup, std::vector<Size> from = {}, bool async = false) {
  const SharedDirectory directory;
  const CheckpointConfig every_step{
      .directory = directory.path(), .every_steps = 1, .keep = 0, .async = async};
  const End whole = run<T>(setup, {.config = every_step});
  const Size steps = whole.metrics.steps;
  EXPECT_EQ(whole.metrics.checkpoints, steps);
  EXPECT_EQ(whole.metrics.last_checkpoint, file_of(directory, steps));
  EXPECT_LE(whole.metrics.checkpoint_wait_seconds, whole.metrics.checkpoint_seconds);
  expect_same_end(run<T>(setup, {}), whole);
  for (Size step = 1; step <= steps; ++step) {
    if (!from.empty() && std::find(from.begin(), from.end(), step) == from.end()) continue;
    SCOPED_TRACE("from step " + std::to_string(step));
    const End resumed = run<T>(setup, {}, file_of(directory, step));
    EXPECT_EQ(resumed.metrics.steps, steps - step);
    expect_same_end(resumed, whole);
  }
}

inline Size ranks() { return Communicator::world().size(); }

}  // namespace tessera::checkpoint_test
