// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <tessera/base/error.hpp>
#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/optim/square_limbs.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/plan/orthogonalization.hpp>
#include <tessera/plan/pass/pass.hpp>
#include <tessera/plan/pass/schedule.hpp>
#include <tessera/plan/pipeline/pipeline_timeline.hpp>
#include <tessera/plan/pipeline/stages.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/replica_check.hpp>

namespace tessera {
namespace {

void check(const PlanInput& input) {
  const auto positive = [](std::string_view key, Size value) {
    if (value < 1) throw ConfigError(key, std::to_string(value), "must be positive");
  };
  positive("training.batch_size", input.batch_size);
  positive("training.microbatches", input.microbatches);
  positive("distributed.bucket_bytes", input.bucket_bytes);
  positive("data.samples", input.samples);
  if (input.model.layers.empty())
    throw ConfigError("model.widths", "[]", "must give at least one layer");
}

/// Adds slots for each parameter, its gradient and its moments.
void add_state_slots(const PlanInput& input, StagePlan& stage) {
  const Sharding sharding = sharding_on(input.strategy, input.mesh);
  Size number = 0;
  for (const ParameterPlan& parameter : stage.parameters.parameters) {
    Slot slot{.path = parameter.path,
              .shape = parameter.shape,
              .placements = replicated(input.mesh),
              .cuts = parameter.cuts,
              .parameter = number++};
    for (const Cut& cut : parameter.cuts)
      for (const std::size_t axis : cut.axes)
        slot.placements[axis] =
            Placement::shard(static_cast<int>(cut.dimension)).on_every(cut.repeats);
    const auto add = [&](TensorRole role, const std::string& suffix, Held held) {
      slot.role = role;
      slot.path = parameter.path + suffix;
      slot.held = held;
      slot.type = role == TensorRole::moment ? input.moments_type() : input.state_type;
      stage.slots.push_back(slot);
    };
    add(TensorRole::parameter, "", sharding.held_parameters(input.has_copies()));
    add(TensorRole::gradient, ".gradient", sharding.held_gradients());
    for (Size k = 1; k <= (parameter.is_matrix ? 1 : input.moments); ++k)
      add(TensorRole::moment, ".moment" + std::to_string(k), sharding.held_moments());
  }
}

/// Places tensors in the frame by their lifetimes in the actions of a step. An evaluation can use
/// the same places, because no tensor of it lives longer than in a step.
void place_tensors(StagePlan& stage, const PlanInput& input) {
  const Size listed = listed_passes(input).microbatches;
  for (Storage& storage : stage.storages) storage.alive.resize(listed);
  for (std::size_t now = 0; now < stage.actions.size(); ++now) {
    const Size microbatch =
        stage.repeated.listed(static_cast<Size>(now), stage.actions[now].microbatch);
    for_each_slot(stage.actions[now].action, [&](SlotId id) {
      if (!stage.slots[id].in_frame()) return;
      Range& alive = stage.storages[stage.slots[id].storage].alive[microbatch];
      if (alive.count == 0) alive.begin = static_cast<Size>(now);
      alive.count = static_cast<Size>(now) + 1 - alive.begin;
    });
  }
  const PipelineShape shape = input.pipeline();
  stage.frame_bytes =
      place_in_memory(stage.storages, shape.virtual_stages > 1 ? period_of(shape) : 0);
}

/// Adds the actions and tensors of a stage to its outline.
void add_actions(const Plan& plan, StagePlan& stage, Size number,
                 const std::vector<PipelineAction>& list, const PlanPasses& passes) {
  const PlanInput& input = plan.input;
  PassPlan pass = make_passes(input, plan.placements, stage.chunks, passes);
  static_cast<StageSchedule&>(stage) = make_schedule(input, pass, stage.parameters, number, list);
  stage.slots = std::move(pass.slots);
  stage.storages = std::move(pass.storages);
  place_tensors(stage, input);
  add_state_slots(input, stage);
}

}  // namespace

Range Plan::batch_samples(Size rank) const { return batch_share(input, input.batch_size, rank); }

Size Plan::data_samples(Size rank, Size samples) const {
  const Size full_batches = samples / input.batch_size;
  const Size remainder = samples % input.batch_size;
  return full_batches * batch_samples(rank).count + batch_share(input, remainder, rank).count;
}

const StagePlan& Plan::stage(Size rank) const { return stages[stage_number(rank)]; }

bool Plan::is_copy(Size rank, const ParameterPlan& parameter) const {
  if (parameter.is_copy) return true;
  const AxisSet owned = stage(rank).parameters.buckets[parameter.bucket].axes(Held::owned);
  const AxisSet all = state_axes(input, input.mesh) | input.mesh.repeats();
  return input.mesh.coordinate(rank, (parameter.copies & all) - owned) > 0;
}

std::vector<LayerSpec> Plan::local_layers(Size rank, AxisSet axes) const {
  std::vector<LayerSpec> layers;
  for (std::size_t l = 0; l < placements.size(); ++l)
    layers.push_back(local_layer(input, input.model.layers[l], placements[l], rank, axes));
  return layers;
}

std::vector<PassCount> Plan::flops_along_context() const {
  const AxisSet context = input.mesh.axes_named({"context"});
  std::vector<PassCount> flops;
  for (Size c = 0; c < input.mesh.size_of("context"); ++c)
    flops.push_back(
        count_flops(local_layers(input.mesh.rank_at("context", c), context), input.batch_size));
  return flops;
}

Piece Plan::piece(Size rank, const ParameterPlan& parameter) const {
  return tessera::piece(parameter.shape, parameter.cuts, input.mesh, rank);
}

StatePlan Plan::state(Size rank) const {
  return plan_state(input, stage(rank).parameters.buckets, rank);
}

std::vector<Range> Plan::unique_gradients(Size rank) const {
  const StatePlan own = state(rank);
  const ParameterLayout& layout = stage(rank).parameters;
  std::vector<Range> unique;
  for (const ParameterPlan& parameter : layout.parameters) {
    if (is_copy(rank, parameter) || parameter.sign_rate != 0) continue;
    const Size elements = num_elements(piece(rank, parameter).extent);
    const Range added = own.owned_gradients(parameter.bucket, {parameter.place.begin, elements});
    if (added.count == 0) continue;
    if (!unique.empty() && unique.back().end() == added.begin)
      unique.back().count += added.count;
    else
      unique.push_back(added);
  }
  return unique;
}

Size loss_sums(const PlanInput& input, Size batches) {
  return batches * input.loss_sums() * input.loss_terms();
}

SumsPlan plan_sums(const PlanInput& input, const StagePlan& stage) {
  SumsPlan sums;
  sums.losses = loss_sums(input, input.steps_per_epoch());
  sums.validation = loss_sums(input, input.validation_batches());
  if (input.compares_solutions()) sums.errors = 2;
  if (input.model.ignore_index) sums.counted = 1, sums.evaluated = 2;
  // At most one partial sum per parameter: Plan::unique_gradients() joins contiguous ranges.
  if (input.clips_by_norm)
    sums.norm = input.numerics.reproducible ? square_sums
                                            : static_cast<Size>(stage.parameters.parameters.size());
  if (input.looks_for_infinities()) sums.finite = 1;
  sums.routing = sums_of(input.model).routing;
  sums.part = input.loss_blocks() > 1 ? 1 : 0;
  return sums;
}

Plan outline_plan(PlanInput input) {
  // Ranks that split positions move keys and values, and no queries.
  if (input.mesh.size_of("context") > 1 && input.context_attention != ContextAttention::all_to_all)
    separate_roles(input.model);
  for (LayerSpec& layer : input.model.layers)
    layer.tiling = input.traits.tiling(input.numerics.reproducible);
  Plan plan{input, place_layers(input), {}, {}, 0};
  for (const LayerPlacements& layer : plan.placements)
    if (const Size repeats = layer.along("model").repeats; repeats > 1)
      plan.input.mesh = input.mesh.with_repeats("model", repeats);
  for (const std::vector<Range>& chunks : split_into_stages(input)) {
    StagePlan& stage = plan.stages.emplace_back();
    stage.chunks = chunks;
    stage.parameters = lay_out_parameters(plan.input, plan.placements, chunks);
  }
  return plan;
}

namespace {

/// Counts recomputed layers and, by coordinate along `context`, their FLOPs.
void count_recomputed(Plan& plan) {
  std::set<Size> recomputed;  // a layer in a ring has several actions
  for (const StagePlan& stage : plan.stages)
    for (const ListedAction& listed : stage.actions)
      if (const auto* forward = listed.as<Forward>(); forward && forward->recomputes)
        recomputed.insert(forward->layer);
  for (const Size l : recomputed) ++plan.recomputed_layers[plan.input.model.layers[l].kind->name];
  const AxisSet context = plan.input.mesh.axes_named({"context"});
  for (Size c = 0; !recomputed.empty() && c < plan.input.mesh.size_of("context"); ++c) {
    const std::vector<LayerSpec> layers =
        plan.local_layers(plan.input.mesh.rank_at("context", c), context);
    for (const Size l : recomputed)
      plan.recomputed += count_flops({layers[l]}, plan.input.batch_size).forward;
  }
}

Plan plan_step(const PlanInput& input, const PlanPasses& passes = {}) {
  Plan plan = outline_plan(input);
  const PipelineShape shape = listed_passes(plan.input);
  const ActionLists lists = add_messages(order_passes(shape), shape);
  simulate_pipeline(lists, shape);  // throws if the stages would deadlock
  for (std::size_t s = 0; s < lists.size(); ++s)
    add_actions(plan, plan.stages[s], static_cast<Size>(s), lists[s], passes);
  for (const PassCount& part : plan.flops_along_context())
    plan.flops.forward += part.forward, plan.flops.backward += part.backward;
  plan.orthogonalization = orthogonalization_flops(plan);
  count_recomputed(plan);
  return plan;
}

}  // namespace

Plan make_plan(const PlanInput& input) { return make_plan(input, {}); }

Plan make_plan(const PlanInput& given, const PlanPasses& passes) {
  check(given);
  PlanInput input = given;
  set_grains(input);
  return plan_step(input, passes);
}

Plan plan_last_batch(const Plan& plan, Size samples) {
  const Size remainder = samples % plan.input.batch_size;
  if (remainder == 0) return plan;
  PlanInput input = plan.input;
  input.batch_size = remainder;
  return plan_step(input);
}

}  // namespace tessera
