// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/collectives.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/replica_check.hpp>

namespace tessera {
namespace {

CallSizes call_sizes(const Plan& plan, Size rank) {
  const StatePlan state = plan.state(rank);
  CallSizes sizes;
  for (const UnitPlan& unit : state.units) sizes.units.push_back(unit.whole.count);
  for (const Bucket& bucket : plan.buckets)
    sizes.buckets.push_back(state.gradient(bucket.last_layer).end() -
                            state.gradient(bucket.first_layer).begin);
  for (Size m = 0; m < plan.input.microbatches; ++m)
    sizes.rows.push_back(plan.microbatch_rows(rank, m).count);
  return sizes;
}

/// Columns of what lies between layer - 1 and `layer`, over all ranks.
Size width_before(const Plan& plan, Size layer) {
  const std::vector<LinearSpec>& layers = plan.input.model.layers;
  return layer == 0 ? layers[0].in : layers[layer - 1].out;
}

std::optional<PlannedCall> call_of_transition(Transition transition, Size elements, Size bytes,
                                              std::string_view what) {
  const std::optional<Operation> operation = operation_of(transition);
  if (!operation) return std::nullopt;
  return PlannedCall{Group::model, *operation, elements * bytes, what};
}

class Collector {
 public:
  explicit Collector(const Plan& plan) : plan_(plan) {}

  /// An axis of size 1 issues no call.
  void add(const PlannedCall& call, Cadence cadence) {
    const std::string axis = plan_.input.mesh.group_name(axes_of(call.group, plan_.input));
    if (axis.empty()) return;
    for (CollectivePlan& row : rows_) {
      if (row.axis != axis || row.operation != call.operation || row.cadence != cadence ||
          row.what != call.what)
        continue;
      ++row.calls;
      row.payload_bytes += call.payload_bytes;
      return;
    }
    rows_.push_back({axis, call.operation, 1, call.payload_bytes, cadence, std::string(call.what)});
  }

  const std::vector<CollectivePlan>& rows() const { return rows_; }

 private:
  const Plan& plan_;
  std::vector<CollectivePlan> rows_;
};

}  // namespace

std::string_view name_of(Cadence cadence) {
  switch (cadence) {
    case Cadence::step:
      return "step";
    case Cadence::epoch:
      return "epoch";
    case Cadence::check:
      return "check";
  }
  return "unknown";
}

std::vector<std::string> axes_of(Group group, const PlanInput& input) {
  switch (group) {
    case Group::batch:
      return batch_axes(input.mesh);
    case Group::shard:
      return shard_axes(input.strategy, input.mesh);
    case Group::replica:
      return replica_axes(input.strategy, input.mesh);
    case Group::model:
      return {"model"};
    case Group::split: {
      std::vector<std::string> axes = shard_axes(input.strategy, input.mesh);
      axes.push_back("model");
      return axes;
    }
    case Group::mesh:
      return input.mesh.axis_names();
  }
  return {};
}

std::optional<PlannedCall> call_of(const Action& action, const Plan& plan, const CallSizes& sizes) {
  const Size bytes = size_of(plan.input.dtype);
  const Size scalar = size_of(DType::float64);
  const Layouts& layouts = plan.layouts;
  const Size l = action.index;
  switch (action.kind) {
    case ActionKind::gather:
    case ActionKind::start_gather:
      return PlannedCall{Group::shard, Operation::all_gather, sizes.units[l] * bytes, "parameters"};
    case ActionKind::reduce_scatter:
    case ActionKind::start_reduce_scatter:
      return PlannedCall{Group::shard, Operation::reduce_scatter, sizes.units[l] * bytes,
                         "gradients"};
    case ActionKind::reduce:
    case ActionKind::start_reduce:
      return PlannedCall{Group::replica, Operation::all_reduce, sizes.buckets[l] * bytes,
                         "gradients"};
    case ActionKind::redistribute_output:
      return call_of_transition(layouts.to_output(l),
                                sizes.rows[action.microbatch] * plan.input.model.layers[l].out,
                                bytes, "activations");
    case ActionKind::redistribute_input:
      return call_of_transition(layouts.to_input(l),
                                sizes.rows[action.microbatch] * width_before(plan, l), bytes,
                                "activations");
    case ActionKind::redistribute_gradient:
      return call_of_transition(layouts.to_gradient(l),
                                sizes.rows[action.microbatch] * width_before(plan, l), bytes,
                                "activation gradients");
    case ActionKind::gather_gradient:
      return PlannedCall{Group::model, Operation::all_gather,
                         sizes.rows[action.microbatch] * plan.input.model.layers[l].out * bytes,
                         "activation gradients"};
    case ActionKind::check_finite:
      return PlannedCall{Group::mesh, Operation::all_reduce, scalar, "finite flag"};
    case ActionKind::clip:
      if (!plan.input.clips_by_norm) return std::nullopt;
      return PlannedCall{Group::split, Operation::all_reduce, scalar, "gradient norm"};
    default:
      return std::nullopt;
  }
}

std::vector<CollectivePlan> plan_collectives(const Plan& plan, Size rank) {
  const CallSizes sizes = call_sizes(plan, rank);
  Collector collector(plan);
  for (const Action& action : plan.actions)
    if (const auto call = call_of(action, plan, sizes)) collector.add(*call, Cadence::step);
  const Size scalar = size_of(DType::float64);
  collector.add({Group::batch, Operation::all_reduce,
                 plan.steps_per_epoch() * plan.input.microbatches * scalar, "loss sums"},
                Cadence::epoch);
  if (plan.input.check_replicas_every > 0)
    for (const CheckCall& call : plan_replica_check(plan))
      collector.add({call.group, Operation::all_reduce, call.payload_bytes(), "checksums"},
                    Cadence::check);
  return collector.rows();
}

}  // namespace tessera
