// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "checkpoint/checkpoint_support.hpp"
#include "engine/training_support.hpp"

namespace tessera::checkpoint_test {

/// Of a training's end.
struct End {
  TrainingMetrics metrics;
  std::vector<double> parameters, moments;
};

template <class T>
End run(train_test::Experiment setup, const Checkpointing& checkpointing,
        const std::string& from = "") {
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
  return directory.file(fmt::format("step_{:010}.h5", step));
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

}  // namespace tessera::checkpoint_test
