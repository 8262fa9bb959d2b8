// SPDX-License-Identifier: Apache-2.0
#include "micro/micro_check.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace tessera::bench {
namespace {

constexpr Size ranks = 5, elements = 200;
const auto sums = [](Size i) { return pattern_sum(ranks, i); };

/// Returns the sum over these ranks, added in reverse order.
std::vector<float> sum_of(const std::vector<Size>& of) {
  std::vector<float> values(elements, 0.0F);
  for (Size i = 0; i < elements; ++i)
    for (auto rank = of.rbegin(); rank != of.rend(); ++rank)
      values[static_cast<std::size_t>(i)] += pattern(*rank, i);
  return values;
}

const std::vector<float> right = sum_of({0, 1, 2, 3, 4});

TEST(MicroCheck, CountsEveryWrongElement) {
  std::vector<float> values = right;
  EXPECT_EQ(count_wrong(values, sums), 0);
  EXPECT_EQ(count_wrong({}, sums), 0);
  values[0] += 1;
  values[77] = NAN;
  values[199] = std::nextafter(values[199], 1e3F);
  EXPECT_EQ(count_wrong(values, sums), 3);
}

TEST(MicroCheck, RejectsShiftedAndUntouchedValues) {
  EXPECT_GT(count_wrong(std::vector<float>(right.begin() + 1, right.end()), sums), 150);
  EXPECT_GT(count_wrong(sum_of({0}), sums), 150) << "nothing done";
}

TEST(MicroCheck, RejectsARankThatCountsTwiceInsteadOfOthers) {
  for (Size left_out = 0; left_out < ranks; ++left_out)
    for (Size twice = 0; twice < ranks; ++twice) {
      if (left_out == twice) continue;
      std::vector<Size> of{0, 1, 2, 3, 4};
      of[static_cast<std::size_t>(left_out)] = twice;
      EXPECT_GT(count_wrong(sum_of(of), sums), 150) << twice << " for " << left_out;
    }
  EXPECT_GT(count_wrong(sum_of({1, 1, 1, 3, 4}), sums), 150) << "neighbours of 1";
}

TEST(MicroCheck, FillsAndCountsInViews) {
  const auto value = [](Size i) { return pattern(3, i); };
  const Vector<float> v("v", 32);
  fill_with(v, value);
  EXPECT_EQ(count_wrong_in(v, value), 0);
  Kokkos::deep_copy(Kokkos::subview(v, 5), -100.0F);
  EXPECT_EQ(count_wrong_in(v, value), 1);
}

}  // namespace
}  // namespace tessera::bench
