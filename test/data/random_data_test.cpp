// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <set>

#include <tessera/nn/models/models.hpp>

#include "data/data_support.hpp"

namespace tessera {
namespace {

using data_test::Made;
using data_test::make;

const DataConfig random_data_config{.kind = DataKind::random, .samples = 200, .seed = 3};

TEST(RandomData, ClassesAllOccurAndNothingElse) {
  const ModelSpec model = transformer({.vocabulary = 7, .context = 5});
  const Made made = make(random_data_config, model, {0, 200});
  EXPECT_EQ(made.x.size(), 1000);
  EXPECT_EQ(made.y.size(), 1000);
  EXPECT_NE(made.x, made.y);
  const std::set<double> all{0, 1, 2, 3, 4, 5, 6};
  EXPECT_EQ(std::set<double>(made.x.begin(), made.x.end()), all);
  EXPECT_EQ(std::set<double>(made.y.begin(), made.y.end()), all);
}

TEST(RandomData, NumbersAreStandardNormal) {
  const ModelSpec model = mlp({.widths = {20, 3, 10}});
  const Made made = make(random_data_config, model, {0, 200});
  EXPECT_EQ(made.x.size(), 4000);
  EXPECT_EQ(made.y.size(), 2000);
  for (const std::vector<double>* values : {&made.x, &made.y}) {
    const auto count = static_cast<double>(values->size());
    double sum = 0, squares = 0;
    for (const double v : *values) sum += v, squares += v * v;
    EXPECT_NEAR(sum / count, 0, 4 / std::sqrt(count));
    EXPECT_NEAR(squares / count, 1, 4 * std::sqrt(2 / count));
  }
}

}  // namespace
}  // namespace tessera
