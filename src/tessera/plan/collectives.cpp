// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <set>

#include <tessera/nn/models/loss_terms.hpp>
#include <tessera/optim/square_limbs.hpp>
#include <tessera/plan/collectives.hpp>
#include <tessera/plan/orthogonalization.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/replica_check.hpp>

namespace tessera {
namespace {

class Collector {
 public:
  explicit Collector(const Plan& plan) : plan_(plan) {}

  /// Adds a call. An axis of size 1 issues none.
  void add(AxisSet ranks, Operation operation, Size bytes, std::string_view what, Cadence cadence,
           Size times = 1) {
    const std::string axis = plan_.input.mesh.group_name(ranks);
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

  /// Adds the calls of a list of actions. Of microbatches that do the same, one stands for all.
  void add(const std::vector<ListedAction>& list, const Repetition& repeated,
           const CallSizes& sizes, Cadence cadence) {
    const std::vector<Range> runs =
        equal_microbatches(sizes.samples.microbatches(), sizes.samples.changes());
    for (Size i = 0; i < static_cast<Size>(list.size()); ++i) {
      const auto& [action, microbatch] = list[static_cast<std::size_t>(i)];
      Size time = 0;  // at which the run is reached
      for (const Range& run : runs) {
        const Size behind =
            std::clamp<Size>((run.end() - microbatch + repeated.period - 1) / repeated.period, time,
                             repeated.holds(i) ? repeated.times : 1);
        if (behind == time) continue;
        const auto call = call_of(action, run.begin, plan_, sizes);
        if (call && call->is_issued)
          add(call->ranks, call->operation, call->bytes, call->what, cadence, behind - time);
        time = behind;
      }
    }
  }

  const std::vector<CollectivePlan>& rows() const { return rows_; }

 private:
  const Plan& plan_;
  std::vector<CollectivePlan> rows_;
};

}  // namespace

CallSizes call_sizes(const Plan& plan, Size rank) {
  return {plan.state(rank), BatchSamples(plan.input, plan.input.batch_size, rank), rank,
          plan.stage_number(rank)};
}

std::vector<Range> equal_microbatches(Size microbatches, const std::vector<Size>& changes) {
  std::set<Size> begins{0, 1, microbatches};
  begins.insert(changes.begin(), changes.end());
  std::vector<Range> runs;
  for (auto begin = begins.begin(); *begin < microbatches; ++begin)
    runs.push_back({*begin, *std::next(begin) - *begin});
  return runs;
}

Size own_elements(const Slot& slot, const Plan& plan, const CallSizes& sizes, Size microbatch) {
  const Size samples = sizes.samples.in(microbatch, slot.sample_axes);
  return num_elements(local_shape(slot, samples, plan.input.mesh, sizes.rank));
}

std::optional<ActionCall> call_of(const Action& action, Size microbatch, const Plan& plan,
                                  const CallSizes& sizes) {
  using Call = std::optional<ActionCall>;
  using enum Operation;
  const PlanInput& input = plan.input;
  const StagePlan& stage = plan.stages[sizes.stage];
  const bool in_fixed_order = input.numerics.reproducible;
  const auto call = [](AxisSet ranks, Operation operation, Size elements, DType type,
                       std::string_view what, Phase phase = Phase::whole) -> Call {
    const Size bytes = elements * size_of(type);
    return ActionCall{ranks, operation, bytes, what, phase, phase != Phase::finish};
  };
  const auto scalars = [&](const Scalars& of, Size count, std::string_view what) {
    return call(of.ranks, all_reduce, count, DType::float64, what);
  };
  const auto whole = [&](const BucketMove& move) {
    const BucketPlan& bucket = stage.parameters.buckets[move.bucket];
    return bucket.moves_share(move.ranks) ? sizes.state.buckets[move.bucket].share.count
                                          : bucket.elements;
  };
  return match(
      action, [](const Compute&) -> Call { return {}; },
      [](const PartialLoss&) -> Call { return {}; }, [](const Loss&) -> Call { return {}; },
      [](const Accumulate&) -> Call { return {}; }, [](const Update&) -> Call { return {}; },
      [&](const Move& move) -> Call {
        if (!move.operation) return {};
        const Slot& from = stage.slots[move.from];
        // No rank holds the full buffer of an all-to-all, so its payload is the rank's own block.
        const Size elements =
            *move.operation == all_to_all
                ? own_elements(from, plan, sizes, microbatch)
                : num_elements(local_shape(from, sizes.samples.in(microbatch, from.sample_axes),
                                           input.mesh, sizes.rank, move.axis));
        return call({move.axis}, *move.operation, elements, from.type, content_of(from));
      },
      [&](const Message& message) {
        const Slot& tensor = stage.slots[message.tensor];
        return call(message.ranks, message.sends ? send : receive,
                    own_elements(tensor, plan, sizes, microbatch), tensor.type, content_of(tensor),
                    message.phase);
      },
      [&](const Gather& move) {
        return call(move.ranks, all_gather, whole(move), input.compute_type, "parameters",
                    move.phase);
      },
      [&](const ReduceScatter& move) {
        const BucketPlace& place = sizes.state.buckets[move.bucket];
        const bool of_share = stage.parameters.buckets[move.bucket].moves_share(move.ranks);
        return call(move.ranks, reduce_scatter,
                    (of_share ? place.share_rows : place.nodes) * whole(move), input.state_type,
                    "gradients", move.phase);
      },
      [&](const Reduce& move) {
        const BucketPlace& of = sizes.state.buckets[move.bucket];
        return call(move.ranks, all_reduce, of.share_rows * of.owned.count, input.state_type,
                    "gradients", move.phase);
      },
      [](const Orthogonalize&) -> Call { return {}; },
      [&](const MoveDirections& move) {
        const MatricesPlan of = plan_matrices(plan, move.bucket, sizes.rank);
        const Size elements =
            move.operation == all_to_all
                ? (move.back ? of.held : sizes.state.buckets[move.bucket].share).count
            : move.ranks == input.mesh.axes_named({"model"}) ? of.pieces * of.held.count
                                                             : whole(move);
        return call(move.ranks, move.operation, elements, input.state_type, "directions");
      },
      [&](const ReduceTied& move) {
        const bool has_unit = move.bucket >= 0;
        Call tied = call(move.ranks, all_reduce,
                         has_unit ? sizes.state.buckets[move.bucket].owned.count : 0,
                         input.state_type, "gradients of tied units");
        tied->is_issued = has_unit;
        return tied;
      },
      [&](const ReduceRows& move) {
        const UnitPlan& unit = stage.parameters.units[move.unit];
        const Range& all = unit.partial_gradients;
        const LayerSpec* const of = move.layer < 0 ? nullptr : &input.model.layers[move.layer];
        const Size elements =
            of != nullptr ? gradient_elements(stage.parameters, *of, move.layer) *
                                gradient_rows(input, *of, plan.placements[move.layer], sizes.rank) *
                                sizes.state.buckets[unit.bucket].stacks
            : in_fixed_order ? all.count
                             : sizes.state.owned_gradients(unit.bucket, all).count;
        Call rows =
            call(move.ranks, all_reduce, elements, input.state_type, "gradients of split rows");
        // All ranks of `model` have as many of these elements, so either all issue the call or
        // none.
        rows->is_issued = elements > 0;
        return rows;
      },
      [&](const CountTargets& of) { return scalars(of, 1, "counting targets"); },
      [&](const CheckFinite& of) { return scalars(of, 1, "finite flag"); },
      [&](const FindLargest& of) { return scalars(of, 1, "gradient norm"); },
      [&](const Clip& of) -> Call {
        if (!input.clips_by_norm) return {};
        return scalars(of, in_fixed_order ? square_limbs : 1, "gradient norm");
      });
}

std::set<AxisSet> axes_of_calls(const Plan& plan) {
  const MeshShape& mesh = plan.input.mesh;
  std::set<AxisSet> sets{mesh.all_axes(), loss_axes(mesh), replicating_axes(mesh),
                         state_axes(plan.input, mesh)};
  for (const std::size_t axis : mesh.all_axes()) sets.insert({axis});
  for (const StagePlan& stage : plan.stages)
    for (const BucketPlan& bucket : stage.parameters.buckets)
      sets.insert({bucket.sums, bucket.shares.axes, bucket.updates.axes,
                   bucket.replicas(Held::share), bucket.replicas(), bucket.summing()});
  return sets;
}

std::vector<CollectivePlan> Plan::collectives(Size rank) const {
  const Plan& plan = *this;
  const CallSizes sizes = call_sizes(plan, rank);
  Collector collector(plan);
  const MeshShape& mesh = plan.input.mesh;
  const StagePlan& stage = plan.stage(rank);
  collector.add(stage.actions, stage.repeated, sizes, Cadence::step);
  const auto add_sums = [&](Size sums, std::string_view what, Cadence cadence) {
    collector.add(loss_axes(mesh), Operation::all_reduce, sums * size_of(DType::float64), what,
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
  collector.add(mesh.all_axes(), Operation::all_reduce,
                (report_values + reported_sums(plan.input.model)) * size_of(DType::float64),
                "loss and norm", Cadence::report);
  if (plan.input.hashes_steps)
    collector.add(mesh.all_axes(), Operation::all_reduce,
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
