// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/plan/buckets.hpp>

#include "plan/plan_support.hpp"

namespace tessera {

void PrintTo(const Bucket& b, std::ostream* out) {
  *out << "layers " << b.first_layer << "-" << b.last_layer;
}

namespace {

using plan_test::three_layers;
using Buckets = std::vector<Bucket>;

const Bucket first{0, 0}, second{1, 1}, third{2, 2};

TEST(Buckets, FillFromTheLastLayerUpToTheCap) {
  const auto at = [](Size cap) { return make_buckets(three_layers(), 4, cap); };
  EXPECT_EQ(at(84 + 48 + 80), (Buckets{{0, 2}}));
  EXPECT_EQ(at(84 + 48 + 80 - 1), (Buckets{{1, 2}, first}));
  EXPECT_EQ(at(84 + 48), (Buckets{{1, 2}, first}));
  EXPECT_EQ(at(84 + 48 - 1), (Buckets{third, {0, 1}}));
  EXPECT_EQ(at(48 + 80), (Buckets{third, {0, 1}}));
  EXPECT_EQ(at(48 + 80 - 1), (Buckets{third, second, first}));
}

TEST(Buckets, UnitAboveTheCapStandsAlone) {
  EXPECT_EQ(make_buckets(three_layers(), 4, 1), (Buckets{third, second, first}));
  EXPECT_EQ(make_buckets(three_layers(), 4, 83), (Buckets{third, second, first}));
}

TEST(Buckets, CapCountsBytesNotElements) {
  EXPECT_EQ(make_buckets(three_layers(), 8, 84 + 48).size(), 3u);
  EXPECT_EQ(make_buckets(three_layers(), 8, 2 * (84 + 48)), make_buckets(three_layers(), 4, 132));
}

TEST(Buckets, CoverEveryParameterOnceForAnyCap) {
  const ModelSpec model = mlp({.widths = {3, 11, 13, 7, 5, 1}});
  for (Size cap = 1; cap < 4 * model.num_parameters() + 8; cap += 3) {
    Size next_layer = static_cast<Size>(model.layers.size()) - 1;
    for (const Bucket& bucket : make_buckets(model, 4, cap)) {
      EXPECT_EQ(bucket.last_layer, next_layer) << "cap " << cap;
      next_layer = bucket.first_layer - 1;
      const Size elements =
          model.unit_offset(bucket.last_layer + 1) - model.unit_offset(bucket.first_layer);
      EXPECT_TRUE(bucket.first_layer == bucket.last_layer || elements * 4 <= cap);
    }
    EXPECT_EQ(next_layer, -1) << "cap " << cap;
  }
}

}  // namespace
}  // namespace tessera
