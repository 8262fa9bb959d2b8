// SPDX-License-Identifier: Apache-2.0
// What all kinds of data have in common.
#include <vector>

#include <tessera/nn/models/models.hpp>

#include "data/data_support.hpp"

namespace tessera {
namespace {

const ModelSpec an_mlp = mlp({.widths = {3, 4, 2}});
const ModelSpec a_transformer = transformer({.vocabulary = 11, .context = 5});
const ModelSpec a_vae = vae({.input_width = 25, .hidden = {4}, .latent = 2});
const ModelSpec an_fno = fno({.grid = 6, .modes = 1, .width = 1, .layers = 1});
const ModelSpec a_pinn = pinn({.width = 3, .layers = 1}, {.activation = Activation::tanh});

TEST(DataRow, SamplesDependOnTheSeedAndTheirNumberOnly) {
  const std::vector<std::pair<DataKind, ModelSpec>> generated{
      {DataKind::sum_of_squares, mlp({.widths = {3, 4, 1}})},
      {DataKind::random, an_mlp},
      {DataKind::random, a_transformer},
      {DataKind::copy_task, a_transformer},
      {DataKind::copy_task, transformer({.vocabulary = 11, .context = 6})},
      {DataKind::blobs, a_vae},
      {DataKind::poisson_points, a_pinn},
      {DataKind::darcy, an_fno}};
  for (const auto& [kind, model] : generated) {
    SCOPED_TRACE(name_of(kind));
    const DataConfig data{.kind = kind, .samples = 40, .seed = 3};
    row_of(kind).check(data, model);
    data_test::expect_reproducible(data, model);
  }
}

TEST(DataRow, KindsRejectModelsThatCannotReadThem) {
  struct Case {
    DataKind kind;
    std::vector<ModelSpec> models;
    const char* needed;
  };
  const std::vector<Case> cases{
      {DataKind::sum_of_squares,
       {an_mlp, a_transformer},
       "a model with one row per sample and an output width of 1"},
      {DataKind::copy_task, {an_mlp}, "a sequence model, such as model.kind = \"transformer\""},
      {DataKind::bytes,
       {an_mlp, transformer({.vocabulary = 255, .context = 5})},
       "model.kind = \"transformer\" with model.transformer.vocabulary = 256"},
      {DataKind::blobs,
       {an_mlp, a_transformer, vae({.input_width = 8, .hidden = {4}, .latent = 2}),
        vae({.input_width = 785, .hidden = {4}, .latent = 2})},
       "a model that predicts its input, whose width must be a square number, such as model.kind = "
       "\"vae\""},
      {DataKind::idx, {an_mlp}, "a model that predicts its input, such as model.kind = \"vae\""},
      {DataKind::poisson_points, {an_mlp, an_fno}, "model.kind = \"pinn\""},
      {DataKind::darcy,
       {mlp({.widths = {3, 1}, .bias = false}), a_pinn},
       "a model of fields on a square grid, such as model.kind = \"fno\""},
      {DataKind::npy, {a_pinn}, "a model that learns from examples, unlike model.kind = \"pinn\""}};
  for (const Case& one : cases)
    for (const ModelSpec& model : one.models)
      EXPECT_EQ(data_test::error_of([&] { row_of(one.kind).check({.kind = one.kind}, model); }),
                fmt::format("data.kind = \"{}\": needs {}", name_of(one.kind), one.needed));
}

}  // namespace
}  // namespace tessera
