// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <set>

#include <tessera/nn/models/loss_terms.hpp>
#include <tessera/optim/square_limbs.hpp>
#include <tessera/plan/collectives.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/plan/layout/layouts.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/replica_check.hpp>

namespace tessera {
namespace {

class Collector {
 public:
  explicit Collector(const Plan& plan) : plan_(plan) {}

  /// Adds a call. An axis of size 1 issues none.
  void add(RankSet ranks, Operation operation, Size bytes, std::string_view what, Cadence cadence,
           Size times = 1) {
    const std::string axis = plan_.input.mesh.group_name(axes_of(ranks, plan_.input));
    if (axis.empty()) return;
    for (CollectivePlan& row : rows_) {
      if (row.axis != axis || row.operation != operation || row.cadence != cadence ||
          row.what != what)
        continue;
      row.calls += times;
      row.payload_bytes += times * bytes;
      return;
    }
    rows_.push_back({axis, operation, times, times * bytes, cadence, std::string(what)});
  }

  /// Adds the calls of a list of actions.
  void add(const std::vector<Action>& list, const Repetition& repeated, const CallSizes& sizes,
           Cadence cadence) {
    for_each_distinct(list, repeated, sizes,
                      [&](const Action& action, Size microbatch, Size times) {
                        if (const auto bytes = payload_bytes(action, microbatch, plan_, sizes))
                          add(action.call->ranks, action.call->operation, *bytes, action.call->what,
                              cadence, times);
                      });
  }

  const std::vector<CollectivePlan>& rows() const { return rows_; }

 private:
  const Plan& plan_;
  std::vector<CollectivePlan> rows_;
};

}  // namespace

CallSizes call_sizes(const Plan& plan, Size rank) {
  return {plan.state(rank),        plan.batch_samples(rank).count,
          plan.input.microbatches, plan.along(rank),
          plan.stage_number(rank), expert_samples(plan.input, plan.input.batch_size, rank)};
}

std::vector<Range> equal_microbatches(Size n, Size microbatches, const std::vector<Size>& samples) {
  std::set<Size> begins{0, 1, n};
  for (const Size all : samples) begins.insert(all % microbatches);
  std::vector<Range> runs;
  for (auto begin = begins.begin(); *begin < n; ++begin)
    runs.push_back({*begin, *std::next(begin) - *begin});
  return runs;
}

Size own_elements(const Slot& slot, const CallSizes& sizes, Size microbatch) {
  return num_elements(local_shape(slot, slot.along(), sizes.counts_of(microbatch), sizes.along));
}

namespace {

Size payload_elements(const Action& action, Size microbatch, const Plan& plan,
                      const CallSizes& sizes) {
  const StagePlan& stage = plan.stages[sizes.stage];
  const Operands& operands = action.operands;
  switch (action.call->payload) {
    case Payload::bucket:
      return stage.parameters.buckets[action.index].elements;
    case Payload::own_gradient:
      return sizes.state.gradient(action.index).count;
    case Payload::partial_gradients: {
      const UnitPlan& unit = stage.parameters.units[action.index];
      if (plan.input.numerics.reproducible) return unit.partial_gradients.count;
      return sizes.state.owned_gradients(unit.bucket, unit.partial_gradients).count;
    }
    case Payload::tensor: {
      Along group = stage.slots[operands.from].along();
      (action.call->ranks == RankSet::context ? group.context : group.model) = {};
      return num_elements(
          local_shape(stage.slots[operands.from], group, sizes.counts_of(microbatch), sizes.along));
    }
    case Payload::own_tensor: {
      const SlotId id = operands.from != no_slot ? operands.from : operands.to;
      return own_elements(stage.slots[id], sizes, microbatch);
    }
    case Payload::scalar:
      return 1;
    case Payload::limbs:
      return square_limbs;
  }
  return 0;
}

}  // namespace

std::optional<Size> payload_bytes(const Action& action, Size microbatch, const Plan& plan,
                                  const CallSizes& sizes) {
  if (!action.issues_call()) return std::nullopt;
  const Size elements = payload_elements(action, microbatch, plan, sizes);
  // All ranks of `model` have the same number of these elements, so either all or none issue the
  // call.
  if (action.call->payload == Payload::partial_gradients && elements == 0) return std::nullopt;
  return elements * size_of(action.call->type);
}

std::vector<CollectivePlan> plan_collectives(const Plan& plan, Size rank) {
  const CallSizes sizes = call_sizes(plan, rank);
  Collector collector(plan);
  const StagePlan& stage = plan.stage(rank);
  collector.add(stage.actions, stage.repeated, sizes, Cadence::step);
  const auto add_sums = [&](Size sums, std::string_view what, Cadence cadence) {
    collector.add(RankSet::loss, Operation::all_reduce, sums * size_of(DType::float64), what,
                  cadence);
  };
  const Size epoch_losses = loss_sums(plan.input, plan.steps_per_epoch());
  add_sums(epoch_losses, "loss sums", Cadence::epoch);
  if (plan.input.validation_samples > 0) {
    collector.add(stage.evaluation, stage.evaluation_repeated, sizes, Cadence::evaluated_batch);
    add_sums(loss_sums(plan.input, plan.input.validation_batches()), "loss sums",
             Cadence::validation);
    if (plan.input.model.ignore_index) add_sums(1, "counting targets", Cadence::validation);
    if (plan.input.compares_solutions())
      add_sums(plan_sums(plan.input, stage).errors, "errors", Cadence::validation);
  }
  if (plan.input.check_replicas_every > 0)
    for (const CheckCall& call : plan_replica_check(plan, rank))
      collector.add(call.ranks, Operation::all_reduce, call.payload_bytes(), "checksums",
                    Cadence::check);
  if (plan.input.writes_checkpoints) add_sums(epoch_losses, "loss sums", Cadence::checkpoint);
  collector.add(RankSet::mesh, Operation::all_reduce,
                (report_values + reported_sums(plan.input.model)) * size_of(DType::float64),
                "loss and norm", Cadence::report);
  if (plan.input.hashes_steps)
    collector.add(RankSet::mesh, Operation::all_reduce,
                  num_hashes(plan.input.model) * size_of(DType::int64), "hashes", Cadence::hash);
  return collector.rows();
}

Size num_hashes(const ModelSpec& model) {
  Size parameters = 0;
  for (const LayerSpec& layer : model.layers)
    parameters += static_cast<Size>(layer.parameters.size());
  return 1 + 2 * parameters;
}

std::vector<LedgerRow> planned_traffic(const std::vector<PlannedRun>& runs, Size rank) {
  Ledger ledger;
  for (const PlannedRun& run : runs) {
    const std::array<Size, names_of<Cadence>.size()> times{
        run.steps,       run.epochs,      run.checks,  run.evaluated_batches,
        run.validations, run.checkpoints, run.reports, run.hashes};
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
