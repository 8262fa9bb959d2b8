// SPDX-License-Identifier: Apache-2.0
// The models of experiments. Their sizes suit the number of ranks of this launch.
#pragma once

#include "engine/one_rank.hpp"

namespace tessera::train_test {

inline Size ranks() { return Communicator::world().size(); }

/// Widths are prime; a layer has fewer columns than 8 ranks.
inline Experiment mlp() {
  Experiment setup = of_kind(ModelKind::mlp, DataKind::random, LossKind::mse);
  setup.model.mlp = {.widths = {3, 11, 13, 7, 5}, .activation = Activation::tanh};
  return setup;
}

inline Experiment residual_mlp() {
  Experiment setup = of_kind(ModelKind::residual_mlp, DataKind::random, LossKind::mse);
  setup.model.mlp.activation = Activation::tanh;
  setup.model.residual_mlp = {3, 11, 13, 2, 2};
  return setup;
}

inline Experiment transformer() {
  Experiment setup = of_kind(ModelKind::transformer, DataKind::copy_task, LossKind::cross_entropy);
  const Size heads = ranks() % 3 == 0 ? 6 : 8;
  setup.model.mlp.activation = Activation::gelu;
  setup.model.transformer = {.vocabulary = 11,
                             .context = 7,
                             .width = 2 * heads,
                             .heads = heads,
                             .blocks = 2,
                             .inner_width = 13};
  return setup;
}

/// The transformer as Llama has it. Two heads share keys; without an axis `context`, all do.
inline Experiment llama() {
  Experiment setup = transformer();
  TransformerConfig& model = setup.model.transformer;
  setup.model.mlp.activation = Activation::silu;
  setup.model.mlp.bias = false;
  setup.training.learning_rate /= 4;  // the tied table has two gradients
  model.norm = NormKind::rms_norm;
  model.positions = Positions::rope;
  model.rope_theta = 100, model.rope_scaling = 2, model.rope_original_context = 5;
  model.kv_heads = model.heads;
  model.heads *= 2;
  model.width *= 4;  // a norm of very few columns magnifies rounding errors
  model.qk_norm = true;
  model.tied = true;
  model.feed_forward = FeedForward::gated;
  model.inner_width = 12 * ranks();
  return setup;
}

inline Experiment experts() {
  Experiment setup = transformer();
  TransformerConfig& model = setup.model.transformer;
  model.experts = ranks() % 3 == 0 ? 6 : 8;
  model.top_k = 2;
  model.capacity_factor = 1;
  model.balance_loss = 0.3;
  model.router_z_loss = 0.1;
  return setup;
}

/// The experts as DeepSeek-V3 has them.
inline Experiment biased_experts() {
  Experiment setup = experts();
  TransformerConfig& model = setup.model.transformer;
  model.feed_forward = FeedForward::gated;
  model.inner_width = 2 * ranks();
  model.balance_loss = TransformerConfig().balance_loss;
  model.router = Router::sigmoid;
  model.renormalize = true;
  model.shared_experts = 2;
  model.balance = Balance::bias;
  model.bias_rate = 0.05;
  return setup;
}

inline Experiment vae() {
  Experiment setup = train_test::small_vae();
  setup.model.vae.latent = 4;
  return setup;
}

inline Experiment pinn() {
  Experiment setup = of_kind(ModelKind::pinn, DataKind::poisson_points, LossKind::poisson);
  setup.model.mlp.activation = Activation::tanh;
  setup.model.pinn = {.width = 13, .layers = 3};
  setup.training.learning_rate = 1e-4;
  return setup;
}

/// `model` or `context` divides the modes; the grid's points are uneven shares.
inline Experiment fno() {
  Experiment setup = of_kind(ModelKind::fno, DataKind::darcy, LossKind::relative_l2);
  setup.model.mlp.activation = Activation::gelu;
  setup.training.learning_rate = 1e-3;
  const Size modes = ranks() % 3 == 0 ? 3 : 4;
  setup.model.fno = {
      .grid = 2 * modes + 1, .modes = modes, .width = 3, .layers = 2, .projection = 5};
  return setup;
}

}  // namespace tessera::train_test
