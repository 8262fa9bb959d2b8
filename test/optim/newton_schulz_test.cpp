// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/optim/newton_schulz.hpp>

#include "device_data.hpp"
#include "engine/muon_formula.hpp"

namespace tessera {
namespace {

template <class T>
std::vector<T> orthogonalized_matrix(Size rows, Size cols, bool fixed_order, T factor = 1) {
  NewtonSchulzScratch scratch;
  scratch.raise_to(rows, cols, fixed_order);
  scratch.raise_to(5, 4, fixed_order);  // memory for several matrices
  const NewtonSchulz<T> steps(scratch, fixed_order);
  const Matrix<T> matrix = steps.matrix(rows, cols);
  std::vector<T> values = test::to_host(test::normal_matrix<T>(rows, cols, 1));
  for (T& value : values) value *= factor;
  Kokkos::deep_copy(matrix, test::to_device(values, rows, cols));
  steps.orthogonalize(matrix);
  return test::to_host(matrix);
}

const std::vector<std::pair<Size, Size>> shapes{{1, 1}, {1, 5}, {7, 1}, {8, 8}, {5, 31}, {33, 6}};

TEST(NewtonSchulz, FollowsItsFormula) {
  for (const auto& [rows, cols] : shapes)
    for (const bool fixed_order : {false, true}) {
      const std::vector<double> expected = train_test::orthogonalized(
          test::to_host(test::normal_matrix<double>(rows, cols, 1)), rows, cols);
      const auto exact = orthogonalized_matrix<double>(rows, cols, fixed_order);
      const auto narrow = orthogonalized_matrix<float>(rows, cols, fixed_order);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(exact[i], expected[i], 1e-12) << rows << " x " << cols;
        EXPECT_NEAR(narrow[i], expected[i], 1e-4) << rows << " x " << cols;
      }
    }
}

TEST(NewtonSchulz, MovesSingularValuesNearOne) {
  const auto x = orthogonalized_matrix<double>(5, 31, false);
  const std::vector<double> gram = train_test::times_transposed(x, x, 5, 5, 31);
  for (Size i = 0; i < 5; ++i)
    for (Size j = 0; j < 5; ++j) EXPECT_NEAR(gram[i * 5 + j], i == j ? 1 : 0, 0.5);
}

TEST(NewtonSchulz, DoesNotDependOnTheLengthAndTakesZero) {
  const auto x = orthogonalized_matrix<double>(5, 4, false),
             large = orthogonalized_matrix<double>(5, 4, false, 0x1p80);
  EXPECT_EQ(x, large);
  for (const double value : orthogonalized_matrix<double>(5, 4, false, 0)) EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace tessera
