// SPDX-License-Identifier: Apache-2.0
// Properties of variational autoencoders only.
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "device_data.hpp"
#include "engine/error_everywhere.hpp"
#include "engine/one_rank.hpp"
#include "nn/serial_model.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::small_vae;

TEST(Vae, TrainsWithAColumnParallelEncoder) {
  const Size ranks = Communicator::world().size();
  Experiment setup = train_test::on_mesh(small_vae(), {{"model", ranks}}, "data");
  setup.training.distributed.parameter_specs = {{"encoder1/kernel", "P(None, 'model')"},
                                                {"encoder2/kernel", "P(None, 'model')"}};
  train_test::expect_trains_like_one_rank(setup);
}

TEST(Vae, EvaluationHasBothTermsOfTheLoss) {
  const Size ranks = Communicator::world().size();
  for (const char* axis : {"fsdp", "pipeline"}) {
    if (axis == std::string("pipeline") && ranks > 4) continue;
    SCOPED_TRACE(axis);
    Experiment setup = train_test::on_mesh(small_vae(), {{axis, ranks}}, "fsdp");
    if (axis == std::string("pipeline")) setup.training.distributed.strategy = Strategy::data;
    setup.training.microbatches = 3;
    Trainer<double> trainer = train_test::trainer_of<double>(setup);
    trainer.fit(setup.data);
    const train_test::Samples<double> all = train_test::samples_of<double>(setup);
    const Matrix<double> x = rows_of(all.x, {0, 7});
    test::SerialModel<double> alone(make_model(setup.model), 7, LossKind::bce);
    Kokkos::deep_copy(alone.parameters(), trainer.gather());
    alone.set_step(6);  // each step draws its own noise
    const double expected = alone.loss(x, x);
    EXPECT_GT(train_test::to_host(alone.loss_sum())[1], 0);
    EXPECT_NEAR(trainer.evaluate(x, x), expected, 1e-12 * expected);
    EXPECT_NEAR(trainer.evaluate(x, x), expected, 1e-12 * expected);  // sums start at zero again
  }
}

/// There are more than two batches, so draws of another batch would repeat.
TEST(Vae, GeneratedSamplesAreDecodedDraws) {
  const Size ranks = Communicator::world().size();
  constexpr Size count = 17;
  for (const char* axis : {"fsdp", "model", "pipeline"}) {
    if (axis == std::string("pipeline") && ranks > 4) continue;
    SCOPED_TRACE(axis);
    Experiment setup = train_test::on_mesh(small_vae(), {{axis, ranks}}, "fsdp");
    if (axis != std::string("fsdp")) setup.training.distributed.strategy = Strategy::data;
    setup.training.microbatches = 3;
    Trainer<double> trainer = train_test::trainer_of<double>(setup);
    trainer.fit(setup.data);
    const std::vector<double> drawn = test::to_host(trainer.sample(count));
    ASSERT_EQ(drawn.size(), static_cast<std::size_t>(9 * count));
    test::SerialModel<double> alone(make_model(setup.model), count, LossKind::bce);
    Kokkos::deep_copy(alone.parameters(), trainer.gather());
    alone.set_step(6);
    alone.draw_from_prior();
    const Matrix<double> nothing("nothing", count, 9);
    alone.loss(nothing, nothing);
    EXPECT_LE(train_test::relative_difference(drawn, test::to_host(alone.output())), 1e-12);
    std::set<double> first_columns;
    for (Size i = 0; i < count; ++i) first_columns.insert(drawn[static_cast<std::size_t>(9 * i)]);
    EXPECT_EQ(first_columns.size(), static_cast<std::size_t>(count));
  }
}

TEST(Vae, OtherModelsGenerateNoSamples) {
  Experiment setup = train_test::primes(7);
  Trainer<double> trainer = train_test::trainer_of<double>(
      train_test::on_mesh(setup, {{"data", Communicator::world().size()}}, "data"));
  trainer.fit(setup.data);
  EXPECT_EQ(train_test::error_everywhere([&] { trainer.sample(3); }),
            "trainer: this model has no latent variables, so it cannot generate samples");
}

}  // namespace
}  // namespace tessera
