// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/names.hpp>
#include <tessera/comm/ledger.hpp>
#include <tessera/plan/layout/rank_set.hpp>
#include <tessera/plan/layout/units.hpp>
#include <tessera/plan/pass/action.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

struct Plan;

/// The event that issues a planned collective.
enum class Cadence : std::uint8_t { step, epoch, check, evaluated_batch, validation, checkpoint };
template <>
inline constexpr std::array<std::string_view, 6> names_of<Cadence>{
    "step", "epoch", "check", "evaluated batch", "validation", "checkpoint"};

/// Calls of a rank with one axis, operation, cadence and purpose.
struct CollectivePlan {
  std::string axis;  ///< one axis, or several as "data+fsdp"
  Operation operation = Operation::all_reduce;
  Size calls = 0;          ///< calls of one event of this cadence
  Size payload_bytes = 0;  ///< sum over these calls
  Cadence cadence = Cadence::step;
  std::string what;
  friend bool operator==(const CollectivePlan&, const CollectivePlan&) = default;
};

/// The numbers that determine the sizes of a rank's calls, computed once per rank.
struct CallSizes {
  StatePlan state;
  Size samples = 0;  ///< of all microbatches together
  Size microbatches = 1;
  Size model_coordinate = 0;
  Size stage = 0;
  /// Returns the samples of a microbatch.
  Size rows(Size microbatch) const {
    return balanced_split(samples, microbatches, microbatch).count;
  }
};
CallSizes call_sizes(const Plan& plan, Size rank);

/// Returns the bytes of the full logical buffer of the action's call; none if the rank of `sizes`
/// issues no call.
std::optional<Size> payload_bytes(const Action& action, Size microbatch, const Plan& plan,
                                  const CallSizes& sizes);

/// Returns the elements of the rank's own block of a tensor of the pass.
Size own_elements(const Slot& slot, const Plan& plan, const CallSizes& sizes, Size microbatch);

/// Splits the first `n` microbatches into runs of equal work on ranks with these numbers of
/// samples. A step of many microbatches is computed from one microbatch of each run. Microbatch 0
/// is a run of its own, because later microbatches add to its gradients.
std::vector<Range> equal_microbatches(Size n, Size microbatches, const std::vector<Size>& samples);

/// Calls act(action, microbatch, times) for each action of a list, once per run of equal
/// microbatches. `times` is the length of the run.
template <class Act>
void for_each_distinct(const std::vector<Action>& list, const Repetition& repeated,
                       const CallSizes& sizes, const Act& act) {
  const auto rest = list.begin() + repeated.actions;
  for (const Range& run : equal_microbatches(repeated.times, sizes.microbatches, {sizes.samples}))
    for (auto action = list.begin(); action != rest; ++action) act(*action, run.begin, run.count);
  for (auto action = rest; action != list.end(); ++action)
    act(*action, action->microbatch, Size{1});
}

/// Returns the calls of `rank` by axis, operation and purpose, in the order of their first call.
std::vector<CollectivePlan> plan_collectives(const Plan& plan, Size rank);

/// Numbers of events that issue the calls of one plan.
struct PlannedRun {
  const Plan* plan = nullptr;
  Size steps = 0;
  Size epochs = 0;
  Size checks = 0;  ///< checks of replicas
  Size evaluated_batches = 0;
  Size validations = 0;
  Size checkpoints = 0;
};

/// Returns the contents of the ledger of `rank` after these runs, in the ledger's order. Measured
/// traffic must equal it.
std::vector<LedgerRow> planned_traffic(const std::vector<PlannedRun>& runs, Size rank);

/// Return the traffic of one step of rank 0, and the payload bytes of all its calls.
std::vector<LedgerRow> step_traffic(const Plan& plan);
Size step_bytes(const Plan& plan);

}  // namespace tessera
