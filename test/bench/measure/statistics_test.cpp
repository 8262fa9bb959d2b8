// SPDX-License-Identifier: Apache-2.0
#include "measure/statistics.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace tessera::bench {
namespace {

std::vector<double> numbers(double first, double last) {
  std::vector<double> values;
  for (double v = last; v >= first; --v) values.push_back(v);  // not sorted upwards
  return values;
}

TEST(Statistics, MedianIsTheMiddleOrTheMeanOfTheTwo) {
  EXPECT_EQ(statistics_of({3, 1, 2}).median, 2);
  EXPECT_EQ(statistics_of({4, 1, 3, 2}).median, 2.5);
  EXPECT_EQ(statistics_of({7}).median, 7);
}

TEST(Statistics, DeviationIsTheMedianDistance) {
  EXPECT_EQ(statistics_of({1, 2, 3, 4, 100}).mad, 1);
  EXPECT_EQ(statistics_of({5, 5, 5}).mad, 0);
}

TEST(Statistics, PercentilesLieOnStraightLines) {
  EXPECT_DOUBLE_EQ(statistics_of(numbers(0, 100)).p95, 95);
  EXPECT_DOUBLE_EQ(statistics_of({10, 20}).p95, 19.5);
  EXPECT_EQ(statistics_of({4}).p95, 4);
}

// Ranks from the tables of the sign test: n = 10 -> 2nd and 9th, 30 -> 10th and 21st, 100 -> 40th
// and 61st.
TEST(Statistics, ConfidenceOfTheMedianIsThatOfTheSignTest) {
  const auto expect = [](double n, double low, double high) {
    const Statistics s = statistics_of(numbers(1, n));
    EXPECT_EQ(s.ci95_low, low) << n;
    EXPECT_EQ(s.ci95_high, high) << n;
  };
  expect(6, 1, 6);
  expect(9, 2, 8);
  expect(10, 2, 9);
  expect(30, 10, 21);
  expect(100, 40, 61);
  EXPECT_FALSE(statistics_of(numbers(1, 5)).ci95_low);
}

TEST(Statistics, ConfidenceOfManyValuesDoesNotUnderflow) {
  const Statistics s = statistics_of(numbers(1, 5000));
  // n / 2 -+ 1.96 sqrt(n) / 2
  EXPECT_NEAR(s.ci95_low.value(), 2431, 2);
  EXPECT_NEAR(s.ci95_high.value(), 2570, 2);
}

TEST(Statistics, OutliersAreCountedAndKept) {
  std::vector<double> values = numbers(1, 20);
  EXPECT_EQ(statistics_of(values).outliers, 0);
  values.push_back(1000);
  const Statistics statistics = statistics_of(values);
  EXPECT_EQ(statistics.outliers, 1);
  EXPECT_EQ(statistics.n, 21);
  EXPECT_EQ(statistics.max, 1000);
  EXPECT_EQ(statistics.min, 1);
  EXPECT_EQ(statistics.median, 11);
}

TEST(Statistics, NoValuesAreAnError) { EXPECT_THROW(statistics_of({}), std::invalid_argument); }

}  // namespace
}  // namespace tessera::bench
