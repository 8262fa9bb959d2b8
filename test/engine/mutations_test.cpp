// SPDX-License-Identifier: Apache-2.0
// Steps with one mistake in the plan or in the batch. The comparisons of
// expect_trains_like_one_rank() must detect each.
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

#include "engine/serial_training.hpp"

namespace tessera {
namespace {

using train_test::Axes;
using train_test::Experiment;
using train_test::of_kind;
using train_test::on_mesh;
using train_test::relative_difference;
using train_test::to_host;

Size num_ranks() { return Communicator::world().size(); }
bool is_even() { return num_ranks() % 2 == 0; }

Experiment mlp_on(const Axes& axes, const char* strategy) {
  Experiment setup = train_test::primes(13);
  setup.model.dtype = DType::float64;
  setup.training.optimizer.kind = OptimizerKind::sgd;
  setup.training.learning_rate = 0.1;
  setup.training.distributed.bucket_bytes = 1;
  return train_test::with_options_that_act(on_mesh(setup, axes, strategy));
}

Experiment on_data(const char* strategy) { return mlp_on({{"data", num_ranks()}}, strategy); }
Experiment on_model() { return mlp_on({{"model", num_ranks()}}, "tensor"); }

/// Two positions on each rank of `context`.
Experiment sequences(ContextAttention attention) {
  Experiment setup = of_kind(ModelKind::transformer, DataKind::copy_task, LossKind::cross_entropy);
  setup.model.transformer = {
      .vocabulary = 11, .context = 2 * num_ranks(), .width = 16, .heads = 4, .blocks = 1};
  setup.training.distributed.context_attention = attention;
  return on_mesh(setup, {{"context", num_ranks()}}, "data");
}

Experiment fields() {
  Experiment setup = of_kind(ModelKind::fno, DataKind::darcy, LossKind::relative_l2);
  const Size modes = num_ranks() % 3 == 0 ? 3 : 2;
  setup.model.fno = {
      .grid = 2 * modes + 1, .modes = modes, .width = 3, .layers = 1, .projection = 5};
  return on_mesh(setup, {{"context", num_ranks()}}, "data");
}

Experiment split_experts() {
  Experiment setup = sequences(ContextAttention::gather);
  setup.model.transformer.experts = 5;
  setup.training.distributed.mesh_shape.clear();
  setup.training.distributed.mesh_axis_names.clear();
  return on_mesh(setup, {{"data", 2}, {"expert", num_ranks() / 2}}, "data");
}

Experiment ignored_targets() {
  Experiment setup = of_kind(ModelKind::transformer, DataKind::copy_task, LossKind::cross_entropy);
  setup.model.transformer = {.vocabulary = 3, .context = 5, .width = 12, .heads = 6, .blocks = 1};
  setup.training.ignore_index = 1;
  return on_mesh(setup, {{"data", num_ranks()}}, "data");
}

using ChangePlan = std::function<void(Plan&)>;
using ChangeBatch = std::function<void(Batch<double>&)>;

/// The results of the comparisons after some steps.
struct Seen {
  double numbers = 0;  ///< difference to one rank, of gradients or parameters
  bool traffic = false,
       replicas = false;  ///< calls differ from the plan, and copies from each other
};

constexpr double equal = 1e-11, wide_margin = 1e-3;

bool replicas_differ(const Plan& plan, const Mesh& mesh, const Engine<double>& engine) {
  try {
    ReplicaCheck<double>(plan, mesh, engine)(1);
    return false;
  } catch (const Error&) {
    return true;
  }
}

Seen steps_with(Experiment setup, const ChangePlan& change, const ChangeBatch& change_batch) {
  constexpr Size steps = 4;  // biases, which begin with zero, matter after the first
  setup.training.num_epochs = steps;
  setup.data.samples = setup.training.batch_size;
  setup.training.check_replicas_every = 1;
  const Config config{setup.model, setup.data, setup.training, {}};
  const MeshShape shape = resolve_mesh(config, num_ranks());
  const Plan plan = make_plan(plan_input(config, shape));
  Plan changed = plan;
  if (change) change(changed);
  const Communicator world = Communicator::world();
  const Mesh mesh(world, shape);
  Engine<double> engine(changed, mesh, StepOptions::of(setup.training));
  const Dataset<double> data = Dataset<double>::generate(plan, mesh.rank(), setup.data);
  Batch<double> batch = data.batch(0);
  if (change_batch) change_batch(batch);
  world.ledger().reset();
  for (Size step = 0; step < steps; ++step) engine.step(batch, 0, setup.training.learning_rate);
  Seen seen;
  seen.traffic = world.ledger().rows() != planned_traffic({{&plan, steps, 0}}, mesh.rank());
  const auto difference = [&](TensorRole role, const std::vector<double>& alone) {
    return relative_difference(to_host(whole_tensors(plan, mesh, engine, role)), alone);
  };
  const train_test::Trained alone = train_test::train_layers(setup);
  seen.numbers = std::max(difference(TensorRole::gradient, alone.gradients),
                          difference(TensorRole::parameter, alone.parameters));
  seen.replicas = replicas_differ(plan, mesh, engine);
  return seen;
}

std::vector<ListedAction>& actions_of(Plan& plan) { return plan.stages.front().actions; }

using Slots = std::vector<Slot>;

/// Removes the actions for which f(action, slots) is true.
template <class F>
ChangePlan leave_out(const F& f) {
  return [=](Plan& plan) {
    const Slots& slots = plan.stages.front().slots;
    ASSERT_GT(std::erase_if(actions_of(plan), [&](const auto& a) { return f(a, slots); }), 0U);
  };
}

/// Removes the calls of one type, or only those on one bucket.
template <class Call>
ChangePlan without(Size bucket = -1) {
  return leave_out([=](const ListedAction& a, const Slots&) {
    const Call* const call = a.as<Call>();
    return call != nullptr && (bucket < 0 || call->bucket == bucket);
  });
}

/// Changes the first action for which f(action, plan) is true.
template <class F, class Change>
ChangePlan change_first(const F& f, const Change& change) {
  return [=](Plan& plan) {
    auto& actions = actions_of(plan);
    const auto at = std::find_if(actions.begin(), actions.end(),
                                 [&](const ListedAction& a) { return f(a, plan); });
    ASSERT_NE(at, actions.end());
    change(actions, at);
  };
}

const auto erase = [](auto& actions, const auto& at) { actions.erase(at); };
const auto repeat = [](auto& actions, const auto& at) {
  const ListedAction again = *at;
  actions.insert(at, again);
};

template <class Call>
bool is_a(const ListedAction& a, const Plan&) {
  return a.as<Call>() != nullptr;
}

bool is_partial(const Plan& plan, const Slot& slot) {
  return placement_along("model", slot.placements, plan.input.mesh).is_partial();
}

bool sums_input_gradient(const ListedAction& a, const Plan& plan) {
  const auto* move = a.as<Move>();
  if (move == nullptr) return false;
  const Slot& from = plan.stages.front().slots[move->from];
  return from.role == TensorRole::gradient && is_partial(plan, from);
}

bool reduces_experts(const ListedAction& a, const Plan& plan) {
  const auto* reduce = a.as<Reduce>();
  return reduce != nullptr && reduce->ranks != replicating_axes(plan.input.mesh);
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

/// The softmax begins again, as if there were no parts before.
void forget_earlier_parts(Plan& plan) {
  for (ListedAction& listed : actions_of(plan))
    if (const auto* forward = listed.as<Forward>(); forward && forward->ring_part == 1) {
      Forward changed = *forward;
      changed.ring_part = 0;
      listed.action = Action(changed);
    }
}

/// Each rank believes that it has other positions than its rows.
void flip_zigzag(Plan& plan) { plan.input.zigzag = !plan.input.zigzag; }

struct Mutation {
  std::string name;
  Experiment setup;
  ChangePlan change;
  Seen seen;  ///< numbers: not 0 if they differ
  ChangeBatch change_batch{};
};

std::vector<Mutation> mutations_of_calls() {
  std::vector<Mutation> all;
  const Seen numbers{1, false, false}, calls{1, true, false}, copies{1, true, true};
  for (const char* strategy : {"data", "zero1", "zero2", "fsdp"})
    all.push_back({std::string("a mean of means, ") + strategy,
                   on_data(strategy),
                   {},
                   numbers,
                   [](auto& batch) { batch.global_samples = batch.samples * num_ranks(); }});
  for (const char* strategy : {"zero1", "zero2", "fsdp"})
    all.push_back({std::string("a unit that is not reduced, ") + strategy, on_data(strategy),
                   without<ReduceScatter>(1), calls});
  all.push_back(
      {"a repeated all-reduce", on_data("data"), change_first(is_a<Reduce>, repeat), calls});
  all.push_back({"a repeated gather",
                 on_data("zero1"),
                 change_first(is_a<Gather>, repeat),
                 {0, true, false}});
  all.push_back({"stale parameters", on_data("zero2"), without<Gather>(1), copies});
  Experiment setup = on_data("zero2");
  setup.training.microbatches = 3;
  setup.training.batch_size = 3 * num_ranks();  // one sample in each microbatch
  all.push_back({"a microbatch that is not reduced", setup,
                 leave_out([](const ListedAction& a, const Slots&) {
                   return a.as<ReduceScatter>() != nullptr && a.microbatch == 2;
                 }),
                 calls});
  if (is_even())
    all.push_back({"no reduction over one of two axes",
                   mlp_on({{"data", 2}, {"fsdp", num_ranks() / 2}}, "hybrid"), without<Reduce>(),
                   copies});
  all.push_back({"a missing sum of an input's gradient", on_model(),
                 change_first(sums_input_gradient, erase), copies});
  setup = on_model();
  setup.model.mlp.activation = Activation::identity;  // only the bias is then wrong
  all.push_back({"a bias on each rank of model", setup, activate_before_reduction, numbers});
  if (num_ranks() <= 4)  // of five layers; the last stage saves nothing
    for (const PipelineSchedule schedule :
         {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
      setup = mlp_on({{"pipeline", num_ranks()}}, "data");
      setup.training.microbatches = 4;
      setup.training.distributed.schedule = schedule;
      all.push_back({"saved values that are overwritten", setup, save_one_microbatch, numbers});
    }
  if (num_ranks() == 2) {  // chunks of one layer
    setup = mlp_on({{"pipeline", 2}}, "data");
    setup.training.microbatches = 3;
    setup.training.distributed.schedule = PipelineSchedule::zbv;
    setup.training.distributed.virtual_stages = 2;
    all.push_back({"a chunk without the output of another one on its stage", setup,
                   [](Plan& plan) {
                     StagePlan& last = plan.stages.back();
                     EXPECT_GT(std::erase_if(last.actions,
                                             [&](const ListedAction& a) {
                                               const auto* copy = a.as<Accumulate>();
                                               return copy != nullptr &&
                                                      last.slots[copy->from].path ==
                                                          last.slots[copy->to].path;
                                             }),
                               0U);
                   },
                   numbers});
  }
  return all;
}

std::vector<Mutation> mutations_of_positions_and_experts() {
  const Seen numbers{1, false, false}, calls{1, true, false};
  const Experiment gather = sequences(ContextAttention::gather),
                   ring = sequences(ContextAttention::ring);
  std::vector<Mutation> all{
      {"a softmax that forgets earlier parts", ring, forget_earlier_parts, numbers},
      {"a part of the ring left out", ring, leave_out([](const ListedAction& a, const Slots&) {
         const auto* forward = a.as<Forward>();
         return forward != nullptr && forward->ring_part == 1;
       }),
       numbers},
      {"gradients of keys that others drop", ring,
       leave_out([](const ListedAction& a, const Slots& slots) {
         const auto* sum = a.as<Accumulate>();
         return sum != nullptr && sum->adds &&
                slots[sum->to].path.ends_with("keys_values.gradient");
       }),
       numbers},
      {"rows of other positions, gathered", gather, flip_zigzag, numbers},
      {"rows of other positions in a ring", ring, flip_zigzag, numbers},
      {"rows of other points of a grid", fields(), flip_zigzag, numbers},
      {"norms of parts of samples", fields(),
       leave_out([](const ListedAction& a, const Slots& slots) {
         const auto* move = a.as<Move>();
         return move != nullptr && slots[move->from].path == "loss/terms";
       }),
       calls},
      {"gradients of own positions", gather, without<Reduce>(), {1, true, true}},
      {"a count of own targets", ignored_targets(),
       [](Plan& plan) {
         actions_of(plan).front().action =
             Action(CountTargets{{plan.input.mesh.axes_named({"model"})}});
       },
       calls}};
  if (4 % num_ranks() == 0)
    all.push_back({"rows of other positions, exchanged", sequences(ContextAttention::all_to_all),
                   flip_zigzag, numbers});
  if (!is_even() || num_ranks() < 4) return all;
  const auto of_other_ranks = [](auto&, const auto& at) {
    Reduce changed = std::get<Reduce>(*at->action);
    changed.ranks = {0, 1};  // also along `expert`
    at->action = Action(changed);
  };
  all.push_back({"experts that are not reduced",
                 split_experts(),
                 change_first(reduces_experts, erase),
                 {1, true, true}});
  all.push_back({"experts that are reduced over other ranks", split_experts(),
                 change_first(reduces_experts, of_other_ranks), calls});
  all.push_back({"samples that do not reach their experts", split_experts(),
                 change_first(is_a<Move>, erase), calls});
  return all;
}

void expect_seen(const std::vector<Mutation>& mutations) {
  for (const Mutation& mutation : mutations) {
    SCOPED_TRACE(mutation.name);
    const Seen right = steps_with(mutation.setup, {}, {});
    EXPECT_LE(right.numbers, equal);
    EXPECT_FALSE(right.traffic || right.replicas);
    const Seen wrong = steps_with(mutation.setup, mutation.change, mutation.change_batch);
    if (mutation.seen.numbers > 0)
      EXPECT_GT(wrong.numbers, wide_margin);
    else
      EXPECT_LE(wrong.numbers, equal);
    EXPECT_EQ(wrong.traffic, mutation.seen.traffic);
    EXPECT_EQ(wrong.replicas, mutation.seen.replicas);
  }
}

TEST(Mutations, OfCallsAndMemoryAreSeen) {
  if (num_ranks() == 1) GTEST_SKIP() << "one rank makes no call";
  expect_seen(mutations_of_calls());
}

TEST(Mutations, OfPositionsAndExpertsAreSeen) {
  if (num_ranks() == 1) GTEST_SKIP() << "one rank makes no call";
  expect_seen(mutations_of_positions_and_experts());
}

}  // namespace
}  // namespace tessera
