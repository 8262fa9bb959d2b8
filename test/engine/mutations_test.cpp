// SPDX-License-Identifier: Apache-2.0
// Steps with one mistake in the plan or the batch. The comparisons that other tests make must
// detect each.
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/base/error.hpp>
#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>
#include <tessera/engine/local_tensors.hpp>
#include <tessera/engine/replicas.hpp>

#include "engine/strategy_support.hpp"

namespace tessera {
namespace {

using train_test::Axes;
using train_test::Experiment;
using train_test::on_mesh;
using train_test::primes;
using train_test::relative_difference;

/// Differences between two steps of SGD with a changed plan and one rank, in the gradient and in
/// the parameters, and the results of the other checks.
struct Seen {
  double gradients = 0;
  double parameters = 0;
  bool traffic_as_planned = false;
  bool replicas_equal = false;
};

constexpr double equal = 1e-12;
constexpr double wide_margin = 1e-3;
constexpr double first_bias = 0.5;  ///< not zero, so that biases matter from the first step on

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
  auto at = all.begin();
  for (const LayerSpec& layer : model.layers)
    for (const ParameterSpec& parameter : layer.parameters) {
      const auto end = at + num_elements(parameter.shape);
      if (parameter.name == "bias") std::fill(at, end, first_bias);
      at = end;
    }
  return all;
}

/// Sets the part of every bias that this rank keeps.
void set_biases(const Plan& plan, Size rank, const Engine<double>& engine) {
  for (const LocalTensor<double>& tensor : local_tensors(plan, rank, engine, TensorRole::parameter))
    if (tensor.slot.shape.size() == 1) Kokkos::deep_copy(tensor.values, first_bias);
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
  Engine<double> engine(changed, mesh, StepOptions::of(setup.training));
  set_biases(plan, mesh.rank(), engine);
  const Dataset<double> data = Dataset<double>::generate(plan, mesh.rank(), setup.data);
  Batch<double> batch = data.batch(0);
  if (change_batch) change_batch(batch);
  world.ledger().reset();
  for (int step = 0; step < 2; ++step) engine.step(batch, 0, setup.training.learning_rate);
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

/// Expects that the comparison succeeds without the change.
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

std::vector<ListedAction>& actions_of(Plan& plan) { return plan.stages.front().actions; }

/// Removes the calls of one type, or only those on one bucket.
template <class Call>
ChangePlan without(Size bucket = -1) {
  return [=](Plan& plan) {
    const auto left_out = [&](const ListedAction& a) {
      const Call* const call = a.as<Call>();
      return call != nullptr && (bucket < 0 || call->bucket == bucket);
    };
    ASSERT_GT(std::erase_if(actions_of(plan), left_out), 0u) << Call::name;
  };
}

template <class Call>
ChangePlan twice() {
  return [=](Plan& plan) {
    const auto at = std::find_if(actions_of(plan).begin(), actions_of(plan).end(),
                                 [](const ListedAction& a) { return a.as<Call>() != nullptr; });
    ASSERT_NE(at, actions_of(plan).end()) << Call::name;
    const ListedAction again = *at;
    actions_of(plan).insert(at, again);
  };
}

bool is_partial(const Plan& plan, const Slot& slot) {
  return placement_along("model", slot.placements, plan.input.mesh).is_partial();
}

/// Applies bias and activation to the terms before their sum.
void activate_before_reduction(Plan& plan) {
  std::vector<ListedAction>& actions = actions_of(plan);
  int swapped = 0;
  for (std::size_t i = 1; i + 1 < actions.size(); ++i) {
    const auto* move = actions[i].as<Move>();
    if (move == nullptr || actions[i - 1].as<Forward>() == nullptr ||
        actions[i + 1].as<Forward>() == nullptr ||
        !is_partial(plan, plan.stages.front().slots[move->from]))
      continue;
    std::swap(actions[i], actions[i + 1]);
    ++i, ++swapped;
  }
  ASSERT_EQ(swapped, 2);
}

/// Removes the redistribution that sums a layer's input gradient.
void without_gradient_sum(Plan& plan) {
  const std::vector<Slot>& slots = plan.stages.front().slots;
  const auto is_sum = [&](const ListedAction& a) {
    const auto* move = a.as<Move>();
    return move != nullptr && slots[move->from].role == TensorRole::gradient &&
           is_partial(plan, slots[move->from]);
  };
  std::vector<ListedAction>& actions = actions_of(plan);
  const auto first = std::find_if(actions.begin(), actions.end(), is_sum);
  ASSERT_NE(first, actions.end());
  actions.erase(first);
}

Size ranks() { return Communicator::world().size(); }

TEST(Mutations, MeanOfMeansIsSeen) {
  if (ranks() == 1) GTEST_SKIP() << "one rank has one mean";
  for (const char* strategy : {"data", "zero1", "zero2", "fsdp"}) {
    SCOPED_TRACE(strategy);
    const Seen seen = run_changed(
        experiment({{"data", ranks()}}, strategy), [](Plan&) {},
        [](Batch<double>& batch) { batch.global_samples = batch.samples * ranks(); });
    EXPECT_GT(seen.gradients, wide_margin);
    EXPECT_GT(seen.parameters, wide_margin / 10);
  }
}

/// Gives all microbatches the same memory for the values that they save for the backward pass.
/// Tensors of messages still have several instances.
void save_one_microbatch(Plan& plan) {
  Size shrunk = 0;
  for (StagePlan& stage : plan.stages) {
    std::set<Size> travel;
    for (const ListedAction& listed : stage.actions)
      if (const auto* message = listed.as<Message>())
        travel.insert(stage.slots[message->tensor].storage);
    for (std::size_t s = 0; s < stage.storages.size(); ++s)
      if (stage.storages[s].instances > 1 && !travel.contains(static_cast<Size>(s))) {
        stage.storages[s].instances = 1;
        ++shrunk;
      }
  }
  ASSERT_GT(shrunk, 0);
}

TEST(Mutations, AStageThatOverwritesSavedValuesIsSeen) {
  if (ranks() == 1 || ranks() > 4)
    GTEST_SKIP() << "there are five layers, and the last stage saves nothing";
  for (const PipelineSchedule schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
    SCOPED_TRACE(name_of(schedule));
    Experiment setup = experiment({{"pipeline", ranks()}}, "data");
    setup.training.microbatches = 4;
    setup.training.distributed.schedule = schedule;
    const Seen seen = run_changed(setup, save_one_microbatch);
    EXPECT_GT(seen.gradients, wide_margin);
    EXPECT_TRUE(seen.traffic_as_planned);
  }
}

TEST(Mutations, BiasAddedOnEveryRankOfModelIsSeen) {
  if (ranks() == 1) GTEST_SKIP() << "one rank sums nothing";
  Experiment setup = experiment({{"model", ranks()}}, "tensor");
  setup.model.mlp.activation = Activation::identity;  // only the bias is then wrong
  const Seen seen = run_changed(setup, activate_before_reduction);
  EXPECT_GT(seen.gradients, wide_margin);
  EXPECT_TRUE(seen.traffic_as_planned) << "only the numbers differ";
  EXPECT_TRUE(seen.replicas_equal);
}

TEST(Mutations, MissingReductionOfALayersInputGradientIsSeen) {
  if (ranks() == 1) GTEST_SKIP() << "one rank sums nothing";
  const Seen seen = run_changed(experiment({{"model", ranks()}}, "tensor"), without_gradient_sum);
  EXPECT_GT(seen.gradients, wide_margin);
  EXPECT_FALSE(seen.traffic_as_planned);
}

TEST(Mutations, MissingReductionOverOneOfTwoDataAxesIsSeen) {
  if (ranks() % 2 != 0) GTEST_SKIP() << "needs two axes";
  const Axes axes = {{"data", 2}, {"fsdp", ranks() / 2}};
  const Seen seen = run_changed(experiment(axes, "hybrid"), without<Reduce>());
  EXPECT_GT(seen.gradients, wide_margin);
  EXPECT_GT(seen.parameters, wide_margin / 10);
  EXPECT_FALSE(seen.traffic_as_planned);
  EXPECT_FALSE(seen.replicas_equal);
}

TEST(Mutations, ReductionOfOneUnitLeftOutIsSeen) {
  if (ranks() == 1) GTEST_SKIP() << "one rank reduces nothing";
  for (const char* strategy : {"zero1", "zero2", "fsdp"}) {
    SCOPED_TRACE(strategy);
    Experiment setup = experiment({{"data", ranks()}}, strategy);
    if (strategy != std::string("fsdp")) setup.training.distributed.bucket_bytes = 1;
    const Seen seen = run_changed(setup, without<ReduceScatter>(1));
    EXPECT_GT(seen.gradients, wide_margin);
    EXPECT_FALSE(seen.traffic_as_planned);
  }
}

// Adam normalizes the gradient and would hide the mistake; the number of calls shows it in any
// case.
TEST(Mutations, ExtraAllReduceIsSeen) {
  if (ranks() == 1) GTEST_SKIP() << "one rank reduces nothing";
  const Seen seen = run_changed(experiment({{"data", ranks()}}, "data"), twice<Reduce>());
  EXPECT_GT(seen.gradients, wide_margin);
  EXPECT_FALSE(seen.traffic_as_planned);
  EXPECT_TRUE(seen.replicas_equal) << "all ranks make the same mistake";
}

TEST(Mutations, ExtraGatherIsSeenInTheTrafficAlone) {
  if (ranks() == 1) GTEST_SKIP() << "one rank gathers nothing";
  const Seen seen = run_changed(experiment({{"data", ranks()}}, "zero1"), twice<Gather>());
  EXPECT_LE(seen.gradients, equal);
  EXPECT_LE(seen.parameters, equal);
  EXPECT_FALSE(seen.traffic_as_planned);
}

TEST(Mutations, StaleParametersAreSeen) {
  if (ranks() == 1) GTEST_SKIP() << "one rank gathers nothing";
  Experiment setup = experiment({{"data", ranks()}}, "zero2");
  setup.training.distributed.bucket_bytes = 1;
  const Seen seen = run_changed(setup, without<Gather>(1));
  EXPECT_GT(seen.gradients, wide_margin / 10);
  EXPECT_FALSE(seen.traffic_as_planned);
  EXPECT_FALSE(seen.replicas_equal);
}

TEST(Mutations, MicrobatchWhoseGradientIsNotReducedIsSeen) {
  if (ranks() == 1) GTEST_SKIP() << "one rank reduces nothing";
  Experiment setup = experiment({{"data", ranks()}}, "zero2");
  setup.training.microbatches = 3;
  setup.training.batch_size = setup.data.samples = 3 * ranks();  // one sample in each microbatch
  const Seen seen = run_changed(setup, [](Plan& plan) {
    std::erase_if(actions_of(plan), [](const ListedAction& a) {
      return a.as<ReduceScatter>() != nullptr && a.microbatch == 2;
    });
  });
  EXPECT_GT(seen.gradients, wide_margin);
  EXPECT_FALSE(seen.traffic_as_planned);
}

}  // namespace
}  // namespace tessera
