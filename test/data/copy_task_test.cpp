// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <set>

#include <tessera/nn/models/models.hpp>

#include "data/data_support.hpp"

namespace tessera {
namespace {

using data_test::Made;
using data_test::make;

const DataConfig copy_task_config{.kind = DataKind::copy_task, .samples = 100, .seed = 3};

ModelSpec model_of_sequences(Size context) {
  return transformer({.vocabulary = 11, .context = context});
}

TEST(CopyTask, TheSecondHalfRepeatsTheFirst) {
  for (const Size context : {1, 2, 5, 6}) {
    SCOPED_TRACE(context);
    const Made made = make(copy_task_config, model_of_sequences(context), {0, 100});
    const Size half = (context + 2) / 2;
    std::set<double> seen;
    for (Size s = 0; s < 100; ++s) {
      const auto x = made.x.begin() + s * context, y = made.y.begin() + s * context;
      std::vector<double> sequence(x, x + context);
      sequence.push_back(y[context - 1]);
      // Each position's target is the next element.
      EXPECT_EQ(std::vector<double>(sequence.begin() + 1, sequence.end()),
                std::vector<double>(y, y + context));
      for (Size i = half; i <= context; ++i) EXPECT_EQ(sequence[i], sequence[i - half]);
      seen.insert(sequence.begin(), sequence.end());
    }
    EXPECT_EQ(seen, (std::set<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  }
}

TEST(CopyTask, SamplesDiffer) {
  const Made made = make(copy_task_config, model_of_sequences(5), {0, 100});
  std::set<std::vector<double>> firsts;
  for (Size s = 0; s < 100; ++s)
    firsts.insert(std::vector<double>(made.x.begin() + 5 * s, made.x.begin() + 5 * s + 3));
  EXPECT_GT(firsts.size(), 90);  // of 1331 possible ones
}

TEST(CopyTask, BestLossIsTheEntropyOfDrawnElements) {
  const auto best = [](Size context) {
    return copy_task_data.best_loss(model_of_sequences(context)).value();
  };
  EXPECT_DOUBLE_EQ(best(31), 15.0 / 31 * std::log(11.0));  // 32 elements, of which 16 are drawn
  EXPECT_DOUBLE_EQ(best(5), 2.0 / 5 * std::log(11.0));     // 6 and 3
  EXPECT_DOUBLE_EQ(best(4), 2.0 / 4 * std::log(11.0));     // 5 and 3
}

}  // namespace
}  // namespace tessera
