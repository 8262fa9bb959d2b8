// SPDX-License-Identifier: Apache-2.0
// Models in which several layers read one output train like the same layers on one rank
// (SerialModel).
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/nn/layers/layers.hpp>

#include "engine/serial_training.hpp"

namespace tessera {
namespace {

using train_test::Experiment;
using train_test::for_strategies;
using train_test::relative_difference;
using train_test::to_host;

/// Compares one step of the engine on any list of layers with one rank in double.
template <class T>
void expect_gradient_of_layers(const ModelSpec& model, Experiment setup, double tolerance) {
  setup.model = {};  // by members: nvcc mistranslates nested designators in templates
  setup.model.mlp.widths = {model.input_width, model.output_width()};
  setup.model.dtype = dtype_of<StateOf<T>>();
  if (is_half_v<T>) setup.training.distributed.mixed_precision = MixedPrecision::bf16;
  setup.training.num_epochs = 1;
  setup.data.samples = setup.training.batch_size;
  const train_test::Trained alone = train_test::train_layers(model, setup);
  const Config config{setup.model, setup.data, setup.training, {}};
  const Communicator world = Communicator::world();
  const Mesh mesh(world, resolve_mesh(config, world.size()));
  PlanInput input = plan_input(config, mesh.shape());
  input.model = model;
  const Plan plan = make_plan(input);
  Engine<T> engine(plan, mesh, StepOptions::of(setup.training));
  const auto data = Dataset<StateOf<T>>::generate(plan, mesh.rank(), setup.data);
  world.ledger().reset();
  engine.step(data.batch(0), 0, setup.training.learning_rate);
  EXPECT_EQ(world.ledger().rows(), planned_traffic({{&plan, 1, 0}}, mesh.rank()));
  EXPECT_LE(relative_difference(to_host(whole_tensors(plan, mesh, engine, TensorRole::gradient)),
                                alone.gradients),
            tolerance);
}

/// Returns models with outputs that several layers read, for each way in which gradients are added.
std::vector<ModelSpec> forks() {
  const auto dense = [](ModelSpec& model, const char* unit, Size input, bool up, Activation a) {
    return append_dense(
        model, {unit, input, up ? 5 : 7, up ? 7 : 5, up ? "embed" : "mlp", up ? "mlp" : "embed", a,
                true, static_cast<std::uint32_t>(input + 1)});
  };
  std::vector<ModelSpec> models(6);
  for (ModelSpec& model : models) model.input_width = 5;
  {  // two column-parallel heads of one output, joined column by column
    ModelSpec& m = models[0];
    const Size x =
        dense(m, "b", dense(m, "a", -1, true, Activation::tanh), false, Activation::tanh);
    const Size left = dense(m, "c", x, true, Activation::tanh);
    const Size right = dense(m, "d", x, true, Activation::gelu);
    dense(m, "e", m.append(add("sum", "sum", left, right, 7)), false, Activation::identity);
  }
  {  // an activation added to its own input: its gradient must not be overwritten
    ModelSpec& m = models[1];
    const Size x = dense(m, "a", -1, true, Activation::identity);
    const Size y = m.append(pointwise("b/output", "b", x, 7, Activation::relu, "mlp"));
    dense(m, "c", m.append(add("sum", "sum", y, x, 7)), false, Activation::tanh);
  }
  {  // a residual around two layers without a norm: a whole gradient and a Partial one are added
    ModelSpec& m = models[2];
    const Size x =
        dense(m, "b", dense(m, "a", -1, true, Activation::tanh), false, Activation::tanh);
    const Size change =
        dense(m, "d", dense(m, "c", x, true, Activation::tanh), false, Activation::tanh);
    dense(m, "e", m.append(add("sum", "sum", x, change, 5)), true, Activation::identity);
  }
  {  // a sum that reads one output twice
    ModelSpec& m = models[3];
    const Size x = dense(m, "a", -1, true, Activation::tanh);
    dense(m, "b", m.append(add("sum", "sum", x, x, 7)), false, Activation::identity);
  }
  {  // a layer of two inputs, both of which another layer reads as well
    ModelSpec& m = models[4];
    const Size x = dense(m, "a", -1, true, Activation::tanh);
    const Size mean = dense(m, "b", x, false, Activation::identity);
    const Size logvar = dense(m, "c", x, false, Activation::tanh);
    const Size z = m.append(reparameterize("z", "z", mean, logvar, 5, 0.5, 42));
    const Size both = m.append(add("both", "both", mean, logvar, 5));
    dense(m, "d", m.append(add("sum", "sum", z, both, 5)), true, Activation::identity);
  }
  {  // layers that read the batch, whose gradient nobody wants
    ModelSpec& m = models[5];
    const Size x = m.append(pointwise("a", "a", LayerSpec::data, 5, Activation::gelu, "embed"));
    const Size logvar = m.append(layer_norm("b", "b", LayerSpec::data, 5, "embed"));
    const Size z = m.append(reparameterize("z", "z", LayerSpec::data, logvar, 5, 0.5, 42));
    dense(m, "d", m.append(add("sum", "sum", z, x, 5)), true, Activation::identity);
  }
  return models;
}

TEST(Forks, GradientsOfEveryReaderAreAdded) {
  const std::vector<ModelSpec> models = forks();
  for (std::size_t number = 0; number < models.size(); ++number)
    for (const bool rows : {false, true}) {
      Experiment base = train_test::primes(13);
      base.training.optimizer.kind = OptimizerKind::sgd;
      base.training.microbatches = 2;
      for_strategies(base, [&](Experiment setup, const std::string& what) {
        const Strategy strategy = setup.training.distributed.strategy;
        if (strategy != Strategy::data && strategy != Strategy::fsdp) return;
        const auto& names = setup.training.distributed.mesh_axis_names;
        if (rows && (names.back() != "model" || number == 1 || number == 3)) return;
        if (rows && setup.training.distributed.mesh_shape.back() == 1) return;
        setup.training.distributed.sequence_parallel = rows;
        SCOPED_TRACE(testing::Message() << what << ", model " << number << ", rows " << rows);
        expect_gradient_of_layers<double>(models[number], setup, 1e-11);
      });
    }
}

TEST(Forks, LayersReadTheBatchInTheComputeType) {
  Experiment setup = train_test::primes(13);
  setup.training.optimizer.kind = OptimizerKind::sgd;
  expect_gradient_of_layers<BFloat16>(
      forks()[5], train_test::on_mesh(setup, {{"data", Communicator::world().size()}}, "data"),
      0.05);
}

}  // namespace
}  // namespace tessera
