// SPDX-License-Identifier: Apache-2.0
#include "engine/random_models.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace tessera::train_test {
namespace {

/// Returns 1, a prime or another small number, often smaller than the number of ranks.
Size random_size(Random& random) {
  constexpr std::array<Size, 6> primes{2, 3, 5, 7, 11, 13};
  if (random.once_in(4)) return 1;
  return random.once_in(2) ? random.one_of(primes) : random.number(1, 14);
}

constexpr std::array activations{Activation::identity, Activation::relu, Activation::tanh,
                                 Activation::sigmoid,  Activation::gelu, Activation::silu};

/// Draws a loss for kinds of models that predict values.
void randomize_loss(Random& random, Experiment& setup) {
  setup.data.kind = DataKind::random;
  setup.training.loss =
      random.one_of(std::array{LossKind::mse, LossKind::mae, LossKind::relative_l2});
}

void randomize_mlp(Random& random, Experiment& setup) {
  MlpConfig& model = setup.model.mlp;
  model.widths.clear();
  for (Size n = random.number(2, 7); n > 0; --n) model.widths.push_back(random_size(random));
  model.output_activation = random.one_of(activations);
  randomize_loss(random, setup);
}

void randomize_residual_mlp(Random& random, Experiment& setup) {
  setup.model.residual_mlp = {.input_width = random_size(random),
                              .width = random_size(random),
                              .inner_width = random_size(random),
                              .blocks = random.number(1, 3),
                              .output_width = random_size(random)};
  randomize_loss(random, setup);
}

/// Draws parts of a transformer that GPT-2 does not have.
void randomize_parts(Random& random, TransformerConfig& model) {
  if (random.once_in(2)) model.norm = NormKind::rms_norm;
  if (random.once_in(2)) model.feed_forward = FeedForward::gated;
  model.tied = random.once_in(2);
  std::vector<Size> divisors;
  for (Size n = 1; n <= model.heads; ++n)
    if (model.heads % n == 0) divisors.push_back(n);
  if (random.once_in(2)) model.kv_heads = random.one_of(divisors);
  model.qk_norm = random.once_in(3);
  if (model.qk_norm) model.width *= 4;  // a norm of very few columns magnifies rounding errors
  if (model.width / model.heads % 2 != 0 || random.once_in(2)) return;
  model.positions = Positions::rope;
  model.rope_theta = 100;
  if (random.once_in(2)) model.rope_scaling = 4, model.rope_original_context = 6;
}

void randomize_transformer(Random& random, Experiment& setup) {
  const Size heads = random.once_in(2) ? random_size(random) : random.number(1, 2) * 4;
  setup.model.transformer = {.vocabulary = 1 + random_size(random),
                             .context = random_size(random),
                             .width = heads * random.number(1, 3),
                             .heads = heads,
                             .blocks = random.number(1, 2),
                             .inner_width = random_size(random)};
  if (random.once_in(2)) randomize_parts(random, setup.model.transformer);
  setup.data.kind = random.once_in(2) ? DataKind::copy_task : DataKind::random;
  setup.training.loss = LossKind::cross_entropy;
}

void randomize_experts(Random& random, TransformerConfig& model) {
  model.experts = random_size(random);
  model.top_k = random.number(1, std::min<Size>(model.experts, 3));
  model.capacity_factor = random.one_of(std::array{0.0, 0.5, 1.0, 1.5});
  model.balance_loss = random.one_of(std::array{0.0, 0.1});
  model.router = random.one_of(std::array{Router::softmax, Router::sigmoid});
  model.renormalize = random.once_in(2);
  model.shared_experts = random.number(0, 2);
  if (random.once_in(2)) return;
  model.balance_loss = TransformerConfig().balance_loss;
  model.balance = Balance::bias;
  model.bias_rate = 0.05;
}

void randomize_vae(Random& random, Experiment& setup) {
  const Size side = random.number(1, 3);
  setup.model.vae = {.input_width = side * side,
                     .hidden = {random_size(random)},
                     .latent = random_size(random),
                     .beta = random.once_in(2) ? 1.0 : 0.5};
  if (random.once_in(2)) setup.model.vae.hidden.push_back(random_size(random));
  setup.data.kind = DataKind::blobs;
  setup.training.loss = LossKind::bce;
}

void randomize_pinn(Random& random, Experiment& setup) {
  setup.model.mlp.activation = Activation::tanh;
  setup.model.pinn = {.width = random_size(random), .layers = random.number(1, 4)};
  setup.data.kind = DataKind::poisson_points;
  setup.training.loss = LossKind::poisson;
}

void randomize_fno(Random& random, Experiment& setup) {
  const Size modes = random.number(1, 4);
  setup.model.fno = {.grid = 2 * modes + random.number(0, 2),
                     .modes = modes,
                     .width = random.number(1, 5),
                     .layers = random.number(1, 2),
                     .projection = random_size(random)};
  setup.data.kind = DataKind::darcy;
  setup.training.loss = LossKind::relative_l2;
}

}  // namespace

void randomize_model(Random& random, Experiment& setup, bool of_experts) {
  constexpr std::array<void (*)(Random&, Experiment&), names_of<ModelKind>.size()> randomize{
      randomize_mlp, randomize_residual_mlp, randomize_transformer,
      randomize_vae, randomize_pinn,         randomize_fno};
  setup.model = {.dtype = DType::float64};
  const auto& axes = setup.training.distributed.mesh_axis_names;
  const bool splits_positions = std::find(axes.begin(), axes.end(), "context") != axes.end();
  Size kind = static_cast<Size>(ModelKind::transformer);
  if (!of_experts)
    kind = static_cast<Size>(splits_positions && random.once_in(3) ? ModelKind::fno
                                                                   : ModelKind::transformer);
  if (!of_experts && !splits_positions)
    kind = random.number(0, static_cast<Size>(randomize.size()) - 1);
  setup.model.kind = static_cast<ModelKind>(kind);
  setup.model.mlp.activation = random.one_of(activations);
  setup.model.mlp.bias = !random.once_in(4);
  randomize[static_cast<std::size_t>(kind)](random, setup);
  if (of_experts) randomize_experts(random, setup.model.transformer);
}

}  // namespace tessera::train_test
