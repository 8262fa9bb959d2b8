// SPDX-License-Identifier: Apache-2.0
// Plans with one mistake in them. The comparisons that the equivalence suite makes must see it.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/engine/local_tensors.hpp>
#include <tessera/engine/replicas.hpp>
#include <tessera/engine/step_options.hpp>
#include <tessera/plan/traffic.hpp>

#include "engine/strategy_support.hpp"

namespace tessera {
namespace {

using train_test::Axes;
using train_test::Experiment;
using train_test::on_mesh;
using train_test::primes;
using train_test::relative_difference;

/// What two steps of SGD on the same batch differ by from one rank's, in the gradient and in the
/// parameters, and what else would tell.
struct Seen {
  double gradients = 0;
  double parameters = 0;
  bool traffic_as_planned = false;
  bool replicas_equal = false;
};

constexpr double equal = 1e-12;
constexpr double wide_margin = 1e-3;
constexpr double first_bias = 0.5;  ///< not zero, so that biases count from the first step on

Experiment experiment(const Axes& axes, const std::string& strategy) {
  Experiment setup = primes(13);
  setup.model.dtype = DType::float64;
  setup.training.optimizer.kind = OptimizerKind::sgd;
  setup.training.learning_rate = 0.1;
  setup.training.num_epochs = 2;
  setup.training.check_replicas_every = 1;
  setup.data.samples = 13;
  return on_mesh(setup, axes, strategy);
}

std::vector<double> first_parameters(const ModelSpec& model, const MlpConfig& config) {
  std::vector<double> all = train_test::initial_parameters(config);
  for (Size l = 0; l < static_cast<Size>(model.layers.size()); ++l) {
    const Size end = model.unit_offset(l) + model.unit_elements(l);
    std::fill(all.begin() + end - model.layers[l].out, all.begin() + end, first_bias);
  }
  return all;
}

/// Sets the part of every bias that this rank keeps.
void set_biases(const Plan& plan, Size rank, const Engine<double>& engine) {
  for (const LocalTensor<double>& tensor : local_tensors(plan, rank, engine, TensorRole::parameter))
    if (tensor.plan.shape.size() == 1) Kokkos::deep_copy(tensor.values, first_bias);
}

bool replicas_equal(const Plan& plan, const Mesh& mesh, const Engine<double>& engine) {
  try {
    ReplicaCheck<double>(plan, mesh, engine)(2);
    return true;
  } catch (const Error&) {
    return false;
  }
}

using ChangePlan = std::function<void(Plan&)>;
using ChangeBatch = std::function<void(Batch<double>&)>;

Seen run(const Experiment& setup, const ChangePlan& change, const ChangeBatch& change_batch = {}) {
  using namespace train_test;
  const Samples<double> all = samples_of<double>(setup);
  const Config config{setup.model, setup.data, setup.training, {}};
  const MeshShape shape = resolve_mesh(config, Communicator::world().size());
  const Plan plan = make_plan(plan_input(config, shape));
  Reference reference(setup.model, setup.training,
                      first_parameters(plan.input.model, setup.model.mlp));
  reference.fit(to_table(all.x), to_table(all.y));

  Plan changed = plan;
  change(changed);
  const Communicator world = Communicator::world();
  const Mesh mesh(world, shape);
  Engine<double> engine(plan, mesh, step_options(setup.training));
  set_biases(plan, mesh.rank(), engine);
  const Dataset<double> data = Dataset<double>::generate(plan, mesh.rank(), setup.data);
  Batch<double> batch = data.batch(0);
  if (change_batch) change_batch(batch);
  world.ledger().reset();
  for (int step = 0; step < 2; ++step) engine.step(changed, batch, 0, setup.training.learning_rate);
  Seen seen;
  seen.traffic_as_planned = world.ledger().rows() == planned_traffic({{&plan, 2, 0}}, mesh.rank());
  const auto whole = [&](TensorRole role) {
    return to_host(whole_tensors(plan, mesh, engine, role));
  };
  seen.gradients = relative_difference(whole(TensorRole::gradient), reference.gradients());
  seen.parameters = relative_difference(whole(TensorRole::parameter), reference.parameters());
  seen.replicas_equal = replicas_equal(plan, mesh, engine);
  return seen;
}

/// What is compared must be right without the change, or its going wrong with it would say nothing.
void expect_right(const Experiment& setup) {
  const Seen seen = run(setup, [](Plan&) {});
  EXPECT_LE(seen.gradients, equal);
  EXPECT_LE(seen.parameters, equal);
  EXPECT_TRUE(seen.traffic_as_planned);
  EXPECT_TRUE(seen.replicas_equal);
}

Seen run_changed(const Experiment& setup, const ChangePlan& change,
                 const ChangeBatch& change_batch = {}) {
  expect_right(setup);
  return run(setup, change, change_batch);
}

bool is(const Action& action, ActionKind kind) { return action.kind == kind; }

/// Leaves out the actions of a kind, or those of one unit, layer or bucket only.
ChangePlan without(ActionKind kind, Size index = -1) {
  return [=](Plan& plan) {
    const auto left_out = [&](const Action& a) {
      return is(a, kind) && (index < 0 || a.index == index);
    };
    ASSERT_GT(std::erase_if(plan.actions, left_out), 0u) << name_of(kind);
  };
}

ChangePlan twice(ActionKind kind) {
  return [=](Plan& plan) {
    const auto at = std::find_if(plan.actions.begin(), plan.actions.end(),
                                 [&](const Action& a) { return is(a, kind); });
    ASSERT_NE(at, plan.actions.end()) << name_of(kind);
    const Action again = *at;
    plan.actions.insert(at, again);
  };
}

/// Bias and activation on the terms, before their sum.
void activate_before_reduction(Plan& plan) {
  int swapped = 0;
  for (std::size_t i = 0; i + 1 < plan.actions.size(); ++i)
    if (is(plan.actions[i], ActionKind::redistribute_output)) {
      ASSERT_TRUE(is(plan.actions[i + 1], ActionKind::activate));
      std::swap(plan.actions[i], plan.actions[i + 1]);
      ++i, ++swapped;
    }
  ASSERT_EQ(swapped, 2);
}

Size ranks() { return Communicator::world().size(); }

TEST(Mutations, MeanOfMeansIsSeen) {
  if (ranks() == 1) GTEST_SKIP() << "one rank has one mean";
  for (const char* strategy : {"data", "zero1", "zero2", "fsdp"}) {
    SCOPED_TRACE(strategy);
    const Seen seen = run_changed(
        experiment({{"data", ranks()}}, strategy), [](Plan&) {},
        [](Batch<double>& batch) {
          batch.global_rows = static_cast<Size>(batch.x.extent(0)) * ranks();
        });
    EXPECT_GT(seen.gradients, wide_margin);
    EXPECT_GT(seen.parameters, wide_margin / 10);
  }
}

TEST(Mutations, BiasAddedOnEveryRankOfModelIsSeen) {
  if (ranks() == 1) GTEST_SKIP() << "no sum";
  Experiment setup = experiment({{"model", ranks()}}, "tensor");
  setup.model.mlp.activation = Activation::identity;  // the bias alone goes wrong
  const Seen seen = run_changed(setup, activate_before_reduction);
  EXPECT_GT(seen.gradients, wide_margin);
  EXPECT_TRUE(seen.traffic_as_planned) << "only numbers can tell";
  EXPECT_TRUE(seen.replicas_equal);
}

TEST(Mutations, MissingReductionOfALayersInputGradientIsSeen) {
  if (ranks() == 1) GTEST_SKIP() << "no sum";
  const Seen seen = run_changed(experiment({{"model", ranks()}}, "tensor"),
                                without(ActionKind::redistribute_gradient, 2));
  EXPECT_GT(seen.gradients, wide_margin);
  EXPECT_FALSE(seen.traffic_as_planned);
}

TEST(Mutations, MissingReductionOverOneOfTwoDataAxesIsSeen) {
  if (ranks() % 2 != 0) GTEST_SKIP() << "needs two axes";
  const Axes axes = {{"data", 2}, {"fsdp", ranks() / 2}};
  const Seen seen = run_changed(experiment(axes, "hybrid"), without(ActionKind::reduce));
  EXPECT_GT(seen.gradients, wide_margin);
  EXPECT_GT(seen.parameters, wide_margin / 10);
  EXPECT_FALSE(seen.traffic_as_planned);
  EXPECT_FALSE(seen.replicas_equal);
}

TEST(Mutations, ReductionOfOneUnitLeftOutIsSeen) {
  if (ranks() == 1) GTEST_SKIP() << "no reduction";
  for (const char* strategy : {"zero1", "zero2", "fsdp"}) {
    SCOPED_TRACE(strategy);
    const Seen seen = run_changed(experiment({{"data", ranks()}}, strategy),
                                  without(ActionKind::reduce_scatter, 1));
    EXPECT_GT(seen.gradients, wide_margin);
    EXPECT_FALSE(seen.traffic_as_planned);
  }
}

// Adam normalises and would train on as before; the count of calls tells in any case.
TEST(Mutations, ExtraAllReduceIsSeen) {
  if (ranks() == 1) GTEST_SKIP() << "no reduction";
  const Seen seen = run_changed(experiment({{"data", ranks()}}, "data"), twice(ActionKind::reduce));
  EXPECT_GT(seen.gradients, wide_margin);
  EXPECT_FALSE(seen.traffic_as_planned);
  EXPECT_TRUE(seen.replicas_equal) << "all ranks do the same wrong";
}

TEST(Mutations, ExtraGatherIsSeenInTheTrafficAlone) {
  if (ranks() == 1) GTEST_SKIP() << "no gather";
  const Seen seen =
      run_changed(experiment({{"data", ranks()}}, "zero1"), twice(ActionKind::gather));
  EXPECT_LE(seen.gradients, equal);
  EXPECT_LE(seen.parameters, equal);
  EXPECT_FALSE(seen.traffic_as_planned);
}

TEST(Mutations, StaleParametersAreSeen) {
  if (ranks() == 1) GTEST_SKIP() << "no gather";
  const Seen seen =
      run_changed(experiment({{"data", ranks()}}, "zero2"), without(ActionKind::gather, 1));
  EXPECT_GT(seen.gradients, wide_margin / 10);
  EXPECT_FALSE(seen.traffic_as_planned);
  EXPECT_FALSE(seen.replicas_equal);
}

TEST(Mutations, MicrobatchWhoseGradientIsNotReducedIsSeen) {
  if (ranks() == 1) GTEST_SKIP() << "no reduction";
  Experiment setup = experiment({{"data", ranks()}}, "zero2");
  setup.training.microbatches = 3;
  const Seen seen = run_changed(setup, [](Plan& plan) {
    std::erase_if(plan.actions, [](const Action& a) {
      return is(a, ActionKind::reduce_scatter) && a.microbatch == 1;
    });
  });
  EXPECT_GT(seen.gradients, wide_margin);
  EXPECT_FALSE(seen.traffic_as_planned);
}

}  // namespace
}  // namespace tessera
