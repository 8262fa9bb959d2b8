// SPDX-License-Identifier: Apache-2.0
#include <tessera/config/config_io.hpp>
#include <tessera/config/config_rules.hpp>

#include "config/config_support.hpp"

namespace tessera {
namespace {

using config_test::expect_error;
using config_test::load_text;

const std::string vae_text =
    "[model]\nkind = 'vae'\n[data]\nkind = 'blobs'\n[training]\nloss = 'bce'\n[model.vae]\n";

TEST(VaeRules, WhatMakesNoModelIsRejected) {
  const auto validated = [](const std::string& more) {
    return [more] { validate(load_text(vae_text + more), 1); };
  };
  expect_error(validated("hidden = [7, 0]"), {"model.vae.hidden = [7, 0]: must all be positive"});
  expect_error(validated("beta = -1"), {"model.vae.beta = -1", "must be finite and not negative"});
  expect_error(validated("latnet = 3"), {"did you mean model.vae.latent?"});
  expect_error(validated("input_width = 10"), {"data.kind = \"blobs\"", "a square"});
  expect_error([] { load_text(vae_text + "hidden = 3"); }, {"model.vae.hidden"});
  Config config = load_text(vae_text);
  config.model.mlp.output_activation = Activation::sigmoid;
  expect_error([&] { validate(config, 1); }, {"model.output_activation = \"sigmoid\""});
  config.model.mlp.output_activation = Activation::identity;
  config.model.kind = ModelKind::mlp;
  config.model.mlp.widths = {784, 784};
  config.model.vae.latent = 3;
  expect_error([&] { validate(config, 1); },
               {"model.kind = \"mlp\": must be \"vae\" if keys such as model.vae.hidden"});
}

/// A mean over elements would divide the divergence by the number of pixels.
TEST(VaeRules, LossesOfElementsAreRejected) {
  Config config = load_text(vae_text);
  for (const LossKind loss : {LossKind::mse, LossKind::mae, LossKind::cross_entropy}) {
    config.training.loss = loss;
    expect_error([&] { validate(config, 1); },
                 {"training.loss", "must be one of relative_l2, bce for model.kind = \"vae\""});
  }
}

}  // namespace
}  // namespace tessera
