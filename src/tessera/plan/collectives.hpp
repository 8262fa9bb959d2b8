// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/names.hpp>
#include <tessera/base/pair_tree.hpp>
#include <tessera/comm/ledger.hpp>
#include <tessera/plan/grains.hpp>
#include <tessera/plan/layout/slot.hpp>
#include <tessera/plan/layout/units.hpp>
#include <tessera/plan/pass/action.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

struct Plan;

/// The event that issues a planned collective.
enum class Cadence : std::uint8_t {
  step,
  epoch,
  check,
  evaluated_batch,
  validation,
  checkpoint,
  report,
  hash
};
template <>
inline constexpr std::array<std::string_view, 8> names_of<Cadence>{
    "step", "epoch", "check", "evaluated batch", "validation", "checkpoint", "report", "hash"};

/// The calls of a rank with the same axis, operation, cadence and purpose.
struct CollectivePlan {
  std::string axis;  ///< one axis, or several as "data+fsdp"
  Operation operation = Operation::all_reduce;
  Size calls = 0;          ///< calls per event of this cadence
  Size payload_bytes = 0;  ///< sum over these calls
  Cadence cadence = Cadence::step;
  std::string what;  ///< purpose, such as "gradients"
  auto operator<=>(const CollectivePlan&) const = default;
};

/// The numbers that determine the sizes of a rank's calls, computed once per rank.
struct CallSizes {
  StatePlan state;
  BatchSamples samples;
  Size rank = 0;
  Size stage = 0;  ///< number of the rank's pipeline stage
};
CallSizes call_sizes(const Plan& plan, Size rank);

/// The collective call or message of an action on one rank.
struct ActionCall {
  AxisSet ranks{};  ///< axes along which its ranks differ; none may be larger than 1
  Operation operation = Operation::all_reduce;
  Size bytes = 0;           ///< payload: the full logical buffer of the call
  std::string_view what{};  ///< purpose, such as "gradients"
  Phase phase = Phase::whole;
  bool is_issued = true;  ///< false: the rank only finishes the call, or has nothing to reduce
  bool operator==(const ActionCall&) const = default;
};

/// Returns the call of an action on the rank of `sizes`; none if the action has no call.
std::optional<ActionCall> call_of(const Action& action, Size microbatch, const Plan& plan,
                                  const CallSizes& sizes);

/// Returns the sets of axes over which ranks make the calls of a plan.
std::set<AxisSet> axes_of_calls(const Plan& plan);

/// Returns the number of elements of the rank's piece of a tensor of the microbatch.
Size own_elements(const Slot& slot, const Plan& plan, const CallSizes& sizes, Size microbatch);

/// Splits the microbatches into runs. In each run, a rank with these BatchSamples::changes() does
/// the same work in every microbatch, so one microbatch stands for the run. Microbatch 0 is a run
/// of its own, because later microbatches add to its gradients.
std::vector<Range> equal_microbatches(Size microbatches, const std::vector<Size>& changes);

/// The numbers of events of a run with one plan.
struct PlannedRun {
  const Plan* plan = nullptr;
  Size steps = 0;
  Size epochs = 0;
  Size checks = 0;  ///< checks of replicas
  Size evaluated_batches = 0;
  Size validations = 0;
  Size checkpoints = 0;
  Size reports = 0;
  Size hashes = 0;  ///< steps that are hashed
};

/// The values that ranks add up for a report: the sum of losses, the squared norm of the gradient,
/// and the step of the next report, which rank 0 chooses.
inline constexpr Size report_values = 3;

/// Returns the number of hashes of a step: of the loss, of gradients and of parameters.
Size num_hashes(const ModelSpec& model);

/// Returns the traffic of `rank` in all these runs together, in the order of Ledger::rows(). The
/// measured traffic must equal it.
std::vector<LedgerRow> planned_traffic(const std::vector<PlannedRun>& runs, Size rank);

/// Return the traffic of rank 0 in one step, and the sum of its payload bytes.
std::vector<LedgerRow> step_traffic(const Plan& plan);
Size step_bytes(const Plan& plan);

}  // namespace tessera
