// SPDX-License-Identifier: Apache-2.0
// Checks that hold for every model.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/nn/layers/layers.hpp>
#include <tessera/nn/models/models.hpp>

#include "expect_error.hpp"
#include "nn/finite_differences.hpp"

namespace tessera {
namespace {

using test::error_of;
using test::expect_gradient;
using test::network;
using test::normal_matrix;
using test::to_device;

struct ModelCase {
  std::string name;
  ModelSpec model;
  LossKind loss;
};

/// Models whose hidden layers pass gradients on, with every activation and loss.
std::vector<ModelCase> model_cases() {
  std::vector<ModelCase> cases;
  for (const Activation a : {Activation::identity, Activation::relu, Activation::tanh,
                             Activation::sigmoid, Activation::gelu}) {
    const std::string name(name_of(a));
    for (const LossKind loss : {LossKind::mse, LossKind::mae, LossKind::relative_l2})
      cases.push_back({"mlp " + name,
                       mlp({.widths = {3, 7, 5, 2}, .activation = a, .output_activation = a}),
                       loss});
    cases.push_back(
        {"residual " + name,
         residual_mlp({3, 5, 7, 2, 2}, {.activation = a, .output_activation = Activation::tanh}),
         LossKind::mse});
  }
  for (const Activation a : {Activation::gelu, Activation::relu})
    cases.push_back({"transformer", transformer({5, 4, 6, 2, 2, 7}, {.activation = a}),
                     LossKind::cross_entropy});
  for (const Activation a : {Activation::tanh, Activation::relu})
    for (const std::vector<Size>& hidden : std::vector<std::vector<Size>>{{5, 4}, {5}, {}})
      cases.push_back({"vae", vae({6, hidden, 3, 2}, {.activation = a}), LossKind::bce});
  for (const Activation output : {Activation::identity, Activation::tanh})
    cases.push_back({"pinn",
                     pinn({5, 3}, {.activation = Activation::tanh, .output_activation = output}),
                     LossKind::poisson});
  cases.push_back(
      {"fno", fno({5, 2, 2, 2, 3}, {.activation = Activation::gelu}), LossKind::relative_l2});
  return cases;
}

/// x and y as the model and the loss read them: class numbers, pixels in [0, 1], the rows of
/// points, or normal numbers.
std::pair<Matrix<double>, Matrix<double>> batch_of(const ModelCase& of, Size samples) {
  const ModelSpec& model = of.model;
  const Size rows = samples * model.input_positions, columns = model.input_width;
  const Matrix<double> targets =
      normal_matrix<double>(samples * model.output_positions(), model.target_width(), 2);
  std::vector<double> x, y;
  for (Size i = 0; i < rows * columns; ++i) {
    const auto number = static_cast<double>(i);
    if (of.loss == LossKind::cross_entropy) {
      x.push_back(static_cast<double>((3 * i + 1) % model.classes));
      y.push_back(static_cast<double>((i * i + 2) % model.classes));
    } else if (of.loss == LossKind::bce) {
      x.push_back(static_cast<double>(i * 7 % 11) / 10);
    } else if (of.loss == LossKind::poisson) {
      const Size row = i / columns % jet_rows;
      const bool is_point = row == 0 || row == jet_rows - 1;
      x.push_back(is_point ? 0.2 + 0.013 * number : row - 1 == i % columns ? 1 : 0);
    }
  }
  if (of.loss == LossKind::cross_entropy)
    return {to_device(x, rows, columns), to_device(y, rows, 1)};
  if (of.loss == LossKind::bce) return {to_device(x, rows, columns), to_device(x, rows, columns)};
  if (of.loss == LossKind::poisson) return {to_device(x, rows, columns), targets};
  return {normal_matrix<double>(rows, columns, 1), targets};
}

TEST(Models, GradientsAgreeWithFiniteDifferences) {
  for (const ModelCase& of : model_cases())
    for (const Size samples : {1, 3}) {
      SCOPED_TRACE(testing::Message() << of.name << ", " << name_of(of.loss) << ", " << samples);
      auto net = network(of.model, samples, of.loss);
      net.set_step(4);
      const auto [x, y] = batch_of(of, samples);
      expect_gradient(net, x, y);
    }
}

TEST(Models, RejectBadSizes) {
  const MlpConfig tanh{.activation = Activation::tanh};
  const auto rejects = [](const std::string& message, const auto& make) {
    EXPECT_EQ(error_of([&] { make(); }), message);
  };
  rejects("model.widths = [4]: must name at least an input and an output width",
          [] { mlp({.widths = {4}}); });
  rejects("model.widths = [4, 0, 1]: must all be positive", [] { mlp({.widths = {4, 0, 1}}); });
  rejects("model.residual_mlp.width = 0: must be positive", [] { residual_mlp({3, 0, 7, 1, 2}); });
  rejects("model.residual_mlp.blocks = 0: must be positive", [] { residual_mlp({3, 5, 7, 0, 2}); });
  rejects("model.transformer.heads = 4: must divide model.transformer.width = 6 evenly",
          [] { transformer({.width = 6, .heads = 4}); });
  rejects("model.transformer.heads = 0: must be positive", [] { transformer({.heads = 0}); });
  rejects("model.vae.latent = 0: must be positive", [] { vae({.latent = 0}); });
  rejects("model.vae.hidden = [3, 0]: must all be positive", [] { vae({.hidden = {3, 0}}); });
  rejects("model.output_activation = \"sigmoid\": must be \"identity\" for model.kind = \"vae\"",
          [] { vae({}, {.output_activation = Activation::sigmoid}); });
  rejects("model.pinn.layers = 0: must be positive", [&] { pinn({.layers = 0}, tanh); });
  rejects(
      "model.activation = \"relu\": must be \"tanh\" or \"identity\" for model.kind = \"pinn\", "
      "which needs its first three derivatives",
      [] { pinn({}, {.activation = Activation::relu}); });
  rejects("model.fno.grid = 7: must be at least twice model.fno.modes = 4",
          [] { fno({.grid = 7, .modes = 4}); });
  rejects("model.fno.projection = -1: must be positive", [] { fno({.projection = -1}); });
  EXPECT_NO_THROW(fno({.grid = 8, .modes = 4}));
}

}  // namespace
}  // namespace tessera
