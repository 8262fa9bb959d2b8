// SPDX-License-Identifier: Apache-2.0
// A tensor-parallel network of PyTorch, made by make_torch_sums.py, that adds its terms along
// `model` in 16 bits: `model_reduce_dtype = "compute"` gives its losses and gradients.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/io/safetensors.hpp>

#include "engine/one_rank.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::on_mesh;
using train_test::roundoff;
using train_test::to_host;

constexpr Size torch_samples = 16, torch_steps = 3;
const std::filesystem::path torch_folder = TESSERA_TORCH_SUMS;

/// Returns the elements of an array in a file of float32.
std::vector<float> array_of(const SafetensorsFile& file, const std::string& name) {
  const SafetensorsArray& array = file.arrays().at(name);
  std::vector<float> values(num_elements(array.shape));
  file.read(array, 0, std::ssize(values), values.data());
  return values;
}

/// Returns |a - b| / |b| in the Euclidean norm: an element that another order of sums rounds to its
/// neighbour counts little.
double relative_norm(const std::vector<double>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double square = 0, all = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    square += (a[i] - b[i]) * (a[i] - b[i]);
    all += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(square / all);
}

template <class T>
Experiment network(const std::string& sums) {
  const Size ranks = Communicator::world().size();
  Experiment setup = on_mesh({}, {{"data", ranks / 2}, {"model", 2}}, "data");
  setup.model.mlp = {.widths = {8, 16, 16, 16, 4}, .activation = Activation::relu, .bias = false};
  setup.training.batch_size = torch_samples;
  setup.training.learning_rate = 1.0 / 4096;
  setup.training.optimizer.kind = OptimizerKind::sgd;
  setup.training.distributed.model_reduce_dtype = value_named<ModelReduceType>(sums).value();
  return train_test::in_type<T>(setup);
}

/// Returns the differences of the loss and of the gradient of a step, counted from 1.
template <class T>
std::pair<double, double> differences(const SafetensorsFile& expected, Size step,
                                      const std::string& sums) {
  Experiment setup = network<T>(sums);
  setup.training.num_epochs = step;
  const std::string weights = torch_folder / "weights.safetensors", of_step = std::to_string(step);
  Trainer<T> trainer(setup.model, setup.training, {}, {.config = {.init_from = weights}});
  const auto matrix = [&](const std::string& name) {
    const std::vector<float> values = array_of(expected, name);
    const Matrix<float> all(name, torch_samples, std::ssize(values) / torch_samples);
    const auto mirror = Kokkos::create_mirror_view(all);
    std::copy(values.begin(), values.end(), mirror.data());
    Kokkos::deep_copy(all, mirror);
    return all;
  };
  const TrainingMetrics metrics = trainer.fit(matrix("x"), matrix("y"));
  std::vector<double> gradient = to_host(trainer.gather(TensorRole::gradient));
  for (double& element : gradient) element /= metrics.loss_scale;
  return {relative_norm({metrics.final_loss()}, array_of(expected, of_step + "/loss")),
          relative_norm(gradient, array_of(expected, of_step + "/gradient"))};
}

template <class T>
class TorchSumsOf : public testing::Test {};
using ShortTypes = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(TorchSumsOf, ShortTypes);

/// Sums in float32 differ much more from PyTorch's.
TYPED_TEST(TorchSumsOf, HaveItsLossesAndGradients) {
  if (Communicator::world().size() % 2 != 0) GTEST_SKIP() << "the network has two parts";
  const bool is_bf16 = std::is_same_v<TypeParam, BFloat16>;
  const SafetensorsFile expected(torch_folder /
                                 (is_bf16 ? "bf16.safetensors" : "fp16.safetensors"));
  for (Size step = 1; step <= torch_steps; ++step) {
    SCOPED_TRACE(step);
    const auto [loss, gradient] = differences<TypeParam>(expected, step, "compute");
    EXPECT_LE(loss, roundoff<TypeParam> / 2);
    EXPECT_LE(gradient, roundoff<TypeParam> / 2);
    const auto [other_loss, other_gradient] = differences<TypeParam>(expected, step, "state");
    EXPECT_GT(other_loss, 2 * roundoff<TypeParam>);
    EXPECT_GT(other_gradient, 2 * roundoff<TypeParam>);
  }
}

}  // namespace
}  // namespace tessera
