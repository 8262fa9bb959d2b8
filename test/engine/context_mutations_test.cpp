// SPDX-License-Identifier: Apache-2.0
// Steps with one mistake in how positions are split along `context`. The comparisons that other
// tests make must detect each.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tessera/config/config_rules.hpp>
#include <tessera/config/to_plan_input.hpp>

#include "engine/serial_training.hpp"

namespace tessera {
namespace {

using train_test::Experiment;

constexpr double same_gradients = 1e-11;
constexpr double other_gradients = 1e-3;

Size num_ranks() { return Communicator::world().size(); }

/// Returns two steps of one batch, with two positions on each rank.
Experiment short_sequences(ContextAttention attention) {
  Experiment setup =
      train_test::of_kind(ModelKind::transformer, DataKind::copy_task, LossKind::cross_entropy);
  setup.model.transformer = {
      .vocabulary = 11, .context = 2 * num_ranks(), .width = 16, .heads = 4, .blocks = 1};
  setup.training.distributed.context_attention = attention;
  return setup;
}

Experiment small_fields() {
  Experiment setup = train_test::of_kind(ModelKind::fno, DataKind::darcy, LossKind::relative_l2);
  const Size modes = num_ranks() % 3 == 0 ? 3 : 2;
  setup.model.fno = {
      .grid = 2 * modes + 1, .modes = modes, .width = 3, .layers = 1, .projection = 5};
  return setup;
}

/// Difference between two steps with a changed plan and one rank.
struct Difference {
  double gradients = 0;
  bool traffic_as_planned = false;
};

using PlanChange = std::function<void(Plan&)>;

Difference steps_with(Experiment setup, const PlanChange& change) {
  using namespace train_test;
  setup.training.num_epochs = 2;
  setup.training.batch_size = setup.data.samples = 3;
  setup = on_mesh(setup, {{"context", num_ranks()}}, "data");
  const Config config{setup.model, setup.data, setup.training, {}};
  const MeshShape shape = resolve_mesh(config, num_ranks());
  const Plan plan = make_plan(plan_input(config, shape));
  Plan changed = plan;
  change(changed);
  const Communicator world = Communicator::world();
  const Mesh mesh(world, shape);
  Engine<double> engine(changed, mesh, StepOptions::of(setup.training));
  const Dataset<double> data = Dataset<double>::generate(plan, mesh.rank(), setup.data);
  world.ledger().reset();
  for (int step = 0; step < 2; ++step) engine.step(data.batch(0), 0, setup.training.learning_rate);
  Difference found;
  found.traffic_as_planned = world.ledger().rows() == planned_traffic({{&plan, 2, 0}}, mesh.rank());
  found.gradients =
      relative_difference(to_host(whole_tensors(plan, mesh, engine, TensorRole::gradient)),
                          train_alone(make_model(setup.model), setup).gradients);
  return found;
}

/// Expects that the comparison succeeds without the change, and returns the difference with it.
Difference difference_with(const Experiment& setup, const PlanChange& change) {
  const Difference right = steps_with(setup, [](Plan&) {});
  EXPECT_LE(right.gradients, same_gradients);
  EXPECT_TRUE(right.traffic_as_planned);
  return steps_with(setup, change);
}

using Slots = std::vector<Slot>;

/// Removes the actions for which f(action, slots) is true.
template <class F>
PlanChange leave_out(const F& f) {
  return [=](Plan& plan) {
    StagePlan& stage = plan.stages.front();
    ASSERT_GT(
        std::erase_if(stage.actions, [&](const ListedAction& a) { return f(a, stage.slots); }), 0u);
  };
}

class ContextMutations : public testing::Test {
 protected:
  void SetUp() override {
    if (num_ranks() == 1) GTEST_SKIP() << "one rank has all positions";
  }
};

// The sums of the parts before are lost, as if the softmax began again.
TEST_F(ContextMutations, ASoftmaxThatForgetsEarlierPartsIsSeen) {
  const Difference found = difference_with(short_sequences(ContextAttention::ring), [](Plan& plan) {
    Size changed = 0;
    for (ListedAction& listed : plan.stages.front().actions)
      if (auto* forward = std::get_if<Forward>(&listed.action))
        if (forward->ring_part == 1) forward->ring_part = 0, ++changed;
    ASSERT_GT(changed, 0);
  });
  EXPECT_GT(found.gradients, other_gradients);
  EXPECT_TRUE(found.traffic_as_planned) << "only the numbers differ";
}

TEST_F(ContextMutations, ASkippedPartOfTheRingIsSeen) {
  const Difference found = difference_with(short_sequences(ContextAttention::ring),
                                           leave_out([](const ListedAction& a, const Slots&) {
                                             const auto* forward = a.as<Forward>();
                                             return forward != nullptr && forward->ring_part == 1;
                                           }));
  EXPECT_GT(found.gradients, other_gradients);
  EXPECT_TRUE(found.traffic_as_planned);
}

TEST_F(ContextMutations, GradientsOfKeysThatOtherRanksDropAreSeen) {
  const Difference found = difference_with(
      short_sequences(ContextAttention::ring),
      leave_out([](const ListedAction& a, const Slots& slots) {
        const auto* sum = a.as<Accumulate>();
        return sum != nullptr && sum->adds && slots[sum->to].path.ends_with("keys_values.gradient");
      }));
  EXPECT_GT(found.gradients, other_gradients);
  EXPECT_TRUE(found.traffic_as_planned);
}

/// Makes each rank believe that it has other positions than its rows.
void flip_zigzag(Plan& plan) { plan.input.zigzag = !plan.input.zigzag; }

TEST_F(ContextMutations, RowsOfOtherPositionsAreSeen) {
  for (const Experiment& setup :
       {short_sequences(ContextAttention::gather), short_sequences(ContextAttention::ring),
        short_sequences(ContextAttention::all_to_all), small_fields()}) {
    if (setup.model.kind == ModelKind::transformer && 4 % num_ranks() != 0) continue;
    SCOPED_TRACE(name_of(setup.training.distributed.context_attention));
    const Difference found = difference_with(setup, flip_zigzag);
    EXPECT_GT(found.gradients, other_gradients);
    EXPECT_TRUE(found.traffic_as_planned);
  }
}

TEST_F(ContextMutations, NormsOfPartsOfSamplesAreSeen) {
  const Difference found =
      difference_with(small_fields(), leave_out([](const ListedAction& a, const Slots& slots) {
                        const auto* move = a.as<Move>();
                        return move != nullptr && slots[move->from].path == "loss/terms";
                      }));
  EXPECT_GT(found.gradients, other_gradients);
  EXPECT_FALSE(found.traffic_as_planned);
}

TEST_F(ContextMutations, GradientsOfOwnPositionsOnlyAreSeen) {
  for (const Experiment& setup : {short_sequences(ContextAttention::gather), small_fields()}) {
    const Difference found = difference_with(
        setup,
        leave_out([](const ListedAction& a, const Slots&) { return a.as<Reduce>() != nullptr; }));
    EXPECT_GT(found.gradients, other_gradients);
    EXPECT_FALSE(found.traffic_as_planned);
  }
}

}  // namespace
}  // namespace tessera
