// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <set>

#include <tessera/plan/collectives.hpp>
#include <tessera/plan/layout/layouts.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/replica_check.hpp>

namespace tessera {
namespace {

class Collector {
 public:
  explicit Collector(const Plan& plan) : plan_(plan) {}

  /// An axis of size 1 issues no call.
  void add(const PlannedCall& call, Cadence cadence, Size times = 1) {
    const std::string axis = plan_.input.mesh.group_name(axes_of(call.ranks, plan_.input));
    if (axis.empty()) return;
    for (CollectivePlan& row : rows_) {
      if (row.axis != axis || row.operation != call.operation || row.cadence != cadence ||
          row.what != call.what)
        continue;
      row.calls += times;
      row.payload_bytes += times * call.payload_bytes;
      return;
    }
    rows_.push_back(
        {axis, call.operation, times, times * call.payload_bytes, cadence, std::string(call.what)});
  }

  /// The calls of a list of actions.
  void add(const std::vector<Action>& list, const Repetition& repeated, const CallSizes& sizes,
           Cadence cadence) {
    for_each_distinct(
        list, repeated, sizes, [&](const Action& action, Size microbatch, Size times) {
          if (const auto call = call_of(on_microbatch(action, microbatch), plan_, sizes))
            add(*call, cadence, times);
        });
  }

  const std::vector<CollectivePlan>& rows() const { return rows_; }

 private:
  const Plan& plan_;
  std::vector<CollectivePlan> rows_;
};

std::string_view what_is(const Slot& slot) {
  return slot.role == TensorRole::gradient ? "activation gradients" : "activations";
}

}  // namespace

CallSizes call_sizes(const Plan& plan, Size rank) {
  return {plan.state(rank), plan.rows(rank).count, plan.input.microbatches,
          plan.model_coordinate(rank), plan.stage_number(rank)};
}

std::vector<Range> equal_microbatches(Size n, Size microbatches, const std::vector<Size>& samples) {
  std::set<Size> begins{0, 1, n};
  for (const Size all : samples) begins.insert(all % microbatches);
  std::vector<Range> runs;
  for (auto begin = begins.begin(); *begin < n; ++begin)
    runs.push_back({*begin, *std::next(begin) - *begin});
  return runs;
}

Size own_elements(const Slot& slot, const Plan& plan, const CallSizes& sizes, Size microbatch) {
  const Shape whole{sizes.rows(microbatch) * slot.positions, slot.shape[1]};
  return num_elements(parameter_block(whole, slot.along_model, plan.input.mesh.size_of("model"),
                                      sizes.model_coordinate)
                          .extent);
}

std::vector<std::string> axes_of(RankSet ranks, const PlanInput& input) {
  switch (ranks) {
    case RankSet::batch:
      return batch_axes(input.mesh);
    case RankSet::shard:
      return shard_axes(input.strategy, input.mesh);
    case RankSet::replica:
      return replica_axes(input.strategy, input.mesh);
    case RankSet::model:
      return {"model"};
    case RankSet::pipeline:
      return {"pipeline"};
    case RankSet::split: {
      std::vector<std::string> axes = shard_axes(input.strategy, input.mesh);
      axes.insert(axes.end(), {"model", "pipeline"});
      return axes;
    }
    case RankSet::loss: {
      std::vector<std::string> axes = batch_axes(input.mesh);
      axes.push_back("pipeline");
      return axes;
    }
    case RankSet::mesh:
      return input.mesh.axis_names();
  }
  return {};
}

std::optional<PlannedCall> call_of(const Action& action, const Plan& plan, const CallSizes& sizes) {
  const StagePlan& stage = plan.stages[sizes.stage];
  const Size bytes = size_of(plan.input.state_type);
  const Size scalar = size_of(DType::float64);
  switch (action.kind) {
    case ActionKind::gather:
    case ActionKind::start_gather:
      return PlannedCall{
          RankSet::shard, Operation::all_gather,
          stage.parameters.buckets[action.index].elements * size_of(plan.input.compute_type),
          "parameters"};
    case ActionKind::reduce_scatter:
    case ActionKind::start_reduce_scatter:
      return PlannedCall{RankSet::shard, Operation::reduce_scatter,
                         stage.parameters.buckets[action.index].elements * bytes, "gradients"};
    case ActionKind::reduce:
    case ActionKind::start_reduce:
      return PlannedCall{RankSet::replica, Operation::all_reduce,
                         sizes.state.gradient(action.index).count * bytes, "gradients"};
    case ActionKind::reduce_rows: {
      const UnitPlan& unit = stage.parameters.units[action.index];
      const Range own = sizes.state.owned_gradients(unit.bucket, unit.own_rows);
      if (own.count == 0) return std::nullopt;
      return PlannedCall{RankSet::model, Operation::all_reduce, own.count * bytes,
                         "gradients of split rows"};
    }
    case ActionKind::redistribute: {
      const Slot& from = stage.slots[action.reads[0]];
      const Transition change =
          transition(from.along_model, stage.slots[action.writes[0]].along_model);
      const std::optional<Operation> operation = operation_of(change);
      if (!operation) return std::nullopt;
      // An all-to-all has no buffer that all ranks share.
      const Size elements = change == Transition::all_to_all
                                ? own_elements(from, plan, sizes, action.microbatch)
                                : sizes.rows(action.microbatch) * from.positions * from.shape[1];
      return PlannedCall{RankSet::model, *operation, elements * size_of(from.type), what_is(from)};
    }
    case ActionKind::start_send:
    case ActionKind::start_receive: {
      const bool sends = action.kind == ActionKind::start_send;
      const Slot& slot = stage.slots[action.index];
      return PlannedCall{RankSet::pipeline, sends ? Operation::send : Operation::receive,
                         own_elements(slot, plan, sizes, action.microbatch) * size_of(slot.type),
                         what_is(slot)};
    }
    case ActionKind::check_finite:
      return PlannedCall{RankSet::mesh, Operation::all_reduce, scalar, "finite flag"};
    case ActionKind::clip:
      if (!plan.input.clips_by_norm) return std::nullopt;
      return PlannedCall{RankSet::split, Operation::all_reduce, scalar, "gradient norm"};
    default:
      return std::nullopt;
  }
}

std::vector<CollectivePlan> plan_collectives(const Plan& plan, Size rank) {
  const CallSizes sizes = call_sizes(plan, rank);
  Collector collector(plan);
  const StagePlan& stage = plan.stage(rank);
  collector.add(stage.actions, stage.repeated, sizes, Cadence::step);
  const Size scalar = size_of(DType::float64);
  const PlannedCall losses{RankSet::loss, Operation::all_reduce,
                           loss_sums(plan.input, plan.steps_per_epoch()) * scalar, "loss sums"};
  collector.add(losses, Cadence::epoch);
  if (plan.input.validation_samples > 0) {
    collector.add(stage.evaluation, stage.evaluation_repeated, sizes, Cadence::evaluated_batch);
    const auto add = [&](Size sums, std::string_view what) {
      collector.add({RankSet::loss, Operation::all_reduce, sums * scalar, what},
                    Cadence::validation);
    };
    add(loss_sums(plan.input, plan.input.validation_batches()), "loss sums");
    if (plan.input.compares_solutions()) add(plan_sums(plan.input, stage).errors, "errors");
  }
  if (plan.input.check_replicas_every > 0)
    for (const CheckCall& call : plan_replica_check(plan, rank))
      collector.add({call.ranks, Operation::all_reduce, call.payload_bytes(), "checksums"},
                    Cadence::check);
  if (plan.input.writes_checkpoints) collector.add(losses, Cadence::checkpoint);
  return collector.rows();
}

std::vector<LedgerRow> planned_traffic(const std::vector<PlannedRun>& runs, Size rank) {
  Ledger ledger;
  for (const PlannedRun& run : runs) {
    const std::array<Size, names_of<Cadence>.size()> times{
        run.steps, run.epochs, run.checks, run.evaluated_batches, run.validations, run.checkpoints};
    for (const CollectivePlan& collective : run.plan->collectives(rank)) {
      const Size n = times[static_cast<std::size_t>(collective.cadence)];
      Ledger::Count& count =
          ledger.axis(collective.axis)[static_cast<std::size_t>(collective.operation)];
      count.calls += n * collective.calls;
      count.payload_bytes += n * collective.payload_bytes;
    }
  }
  return ledger.rows();
}

std::vector<LedgerRow> step_traffic(const Plan& plan) {
  return planned_traffic({{.plan = &plan, .steps = 1}}, 0);
}

Size step_bytes(const Plan& plan) {
  Size bytes = 0;
  for (const LedgerRow& row : step_traffic(plan)) bytes += row.payload_bytes;
  return bytes;
}

}  // namespace tessera
