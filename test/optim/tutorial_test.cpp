// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/nn/models/models.hpp>
#include <tessera/optim/optimizer.hpp>

#include "device_data.hpp"
#include "nn/serial_model.hpp"

namespace tessera {
namespace {

using test::SerialModel;
using test::to_host;

constexpr std::array<double, 20> golden_losses{
    20.304867, 18.196810, 16.266327, 14.503105, 12.904068, 11.463385, 10.173880,
    9.027621,  8.016229,  7.131884,  6.366156,  5.710284,  5.154799,  4.689025,
    4.302612,  3.984879,  3.724764,  3.513017,  3.340585,  3.199372};

/// y = the sum of squares of each row of x; not a constructor's kernel, which nvcc would refuse.
template <class T>
void fill_targets(const Matrix<T>& x, const Matrix<T>& y) {
  Kokkos::parallel_for(
      "tutorial_targets", Kokkos::RangePolicy<ExecSpace>(0, x.extent(0)), KOKKOS_LAMBDA(int i) {
        T sum = 0;
        for (int j = 0; j < 4; ++j) sum += x(i, j) * x(i, j);
        y(i, 0) = sum;
      });
}

/// The tutorial's data: x normal (256, 4), y the sum of squares of a row.
template <class T>
struct TutorialData {
  static constexpr Size samples = 256, batch = 32, batches = 8, epochs = 20;
  Matrix<T> x{"x", samples, 4}, y{"y", samples, 1};

  TutorialData() {
    fill_normal<T>(x, key(0));
    fill_targets<T>(x, y);
  }
  Matrix<const T> x_batch(Size b) const {
    return Matrix<const T>(x.data() + b * batch * 4, batch, 4);
  }
  Matrix<const T> y_batch(Size b) const { return Matrix<const T>(y.data() + b * batch, batch, 1); }
};

ModelSpec tutorial_model() { return mlp({.widths = {4, 64, 1}}); }

template <class T>
std::vector<double> train(MatmulPrecision precision) {
  using Data = TutorialData<T>;
  const Data data;
  SerialModel<T> model(tutorial_model(), Data::batch, LossKind::mse, precision);
  Optimizer<T> adam({}, model.parameters().extent(0));
  std::vector<double> losses;
  for (Size epoch = 0; epoch < Data::epochs; ++epoch) {
    double sum = 0;
    for (Size b = 0; b < Data::batches; ++b) {
      model.compute_gradients(data.x_batch(b), data.y_batch(b));
      adam.step(model.parameters(), model.gradients(), static_cast<T>(1e-3));
      sum += to_host(model.loss_sum())[0] / Data::batch;
    }
    losses.push_back(sum / Data::batches);
  }
  return losses;
}

TEST(Tutorial, StrictFloat32ReachesTheGoldenLossOfEveryEpoch) {
  const std::vector<double> losses = train<float>(MatmulPrecision::strict);
  ASSERT_EQ(losses.size(), golden_losses.size());
  for (std::size_t e = 0; e < losses.size(); ++e) {
    EXPECT_NEAR(losses[e], golden_losses[e], 1e-5) << "epoch " << e;
  }
}

TEST(Tutorial, Float64ReachesTheGoldenLosses) {
  const std::vector<double> losses = train<double>(MatmulPrecision::strict);
  EXPECT_NEAR(losses.front(), 20.304859, 2e-6);
  EXPECT_NEAR(losses.back(), 3.199354, 2e-6);
}

TEST(Tutorial, Tf32ReachesThePublishedLosses) {
  const std::vector<double> losses = train<float>(MatmulPrecision::tf32);
  EXPECT_NEAR(losses.front(), 20.304531, 2e-6);
  EXPECT_NEAR(losses.back(), 3.199348, 2e-6);
}

TEST(Tutorial, FirstBatchHasTheGoldenLossAndGradient) {
  using Data = TutorialData<float>;
  const Data data;
  SerialModel<float> model(tutorial_model(), Data::batch);
  model.compute_gradients(data.x_batch(0), data.y_batch(0));
  EXPECT_NEAR(to_host(model.loss_sum())[0] / Data::batch, 17.144169, 1e-5);
  double squares = 0;
  for (double g : to_host(model.gradients())) squares += g * g;
  EXPECT_NEAR(std::sqrt(squares), 27.296532, 1e-5);
  EXPECT_NEAR(to_host(model.parameter(model.gradients(), "layer2/bias"))[0], -6.473012, 1e-6);
}

}  // namespace
}  // namespace tessera
