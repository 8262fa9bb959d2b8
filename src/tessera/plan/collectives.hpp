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

/// How often a planned collective happens.
enum class Cadence : std::uint8_t { step, epoch, check, evaluated_batch, validation, checkpoint };
template <>
inline constexpr std::array<std::string_view, 6> names_of<Cadence>{
    "step", "epoch", "check", "evaluated batch", "validation", "checkpoint"};

/// One line of the traffic that a step, an epoch, a check of replicas, a batch of a validation, a
/// validation or a checkpoint causes on a rank.
struct CollectivePlan {
  std::string axis;  ///< or axes, "data+fsdp"
  Operation operation = Operation::all_reduce;
  Size calls = 0;          ///< each time
  Size payload_bytes = 0;  ///< of all these calls together
  Cadence cadence = Cadence::step;
  std::string what;
  friend bool operator==(const CollectivePlan&, const CollectivePlan&) = default;
};

/// What the size of a rank's calls depends on, worked out once for a rank.
struct CallSizes {
  StatePlan state;
  Size samples = 0;  ///< of all microbatches
  Size microbatches = 1;
  Size model_coordinate = 0;
  Size stage = 0;
  /// Samples of a microbatch.
  Size rows(Size microbatch) const {
    return balanced_split(samples, microbatches, microbatch).count;
  }
};
CallSizes call_sizes(const Plan& plan, Size rank);

/// Bytes of the full logical buffer of the call that the action issues on the rank of `sizes`; none
/// if it issues no call there.
std::optional<Size> payload_bytes(const Action& action, Size microbatch, const Plan& plan,
                                  const CallSizes& sizes);

/// What a rank itself holds of a tensor of the pass.
Size own_elements(const Slot& slot, const Plan& plan, const CallSizes& sizes, Size microbatch);

/// Runs of the first `n` microbatches in which ranks with so many samples each do the same: what a
/// step of many microbatches is added up from. The first one is a run of its own, as later ones add
/// to what it has left.
std::vector<Range> equal_microbatches(Size n, Size microbatches, const std::vector<Size>& samples);

/// Calls act(action, microbatch, times) for actions of a list that ranks of these sizes do equally
/// often and in one size: once for each run of equal microbatches.
template <class Act>
void for_each_distinct(const std::vector<Action>& list, const Repetition& repeated,
                       const CallSizes& sizes, const Act& act) {
  const auto rest = list.begin() + repeated.actions;
  for (const Range& run : equal_microbatches(repeated.times, sizes.microbatches, {sizes.samples}))
    for (auto action = list.begin(); action != rest; ++action) act(*action, run.begin, run.count);
  for (auto action = rest; action != list.end(); ++action)
    act(*action, action->microbatch, Size{1});
}

/// The calls of `rank` by axis, operation and purpose, in the order of their first call.
std::vector<CollectivePlan> plan_collectives(const Plan& plan, Size rank);

/// How often the calls of one plan were, or will be, made.
struct PlannedRun {
  const Plan* plan = nullptr;
  Size steps = 0;
  Size epochs = 0;
  Size checks = 0;  ///< of replicas
  Size evaluated_batches = 0;
  Size validations = 0;
  Size checkpoints = 0;
};

/// What the ledger of `rank` holds after these runs, in the ledger's own order; measured traffic
/// must be equal to it.
std::vector<LedgerRow> planned_traffic(const std::vector<PlannedRun>& runs, Size rank);

/// The same of one step of rank 0, and the payload bytes of all its calls.
std::vector<LedgerRow> step_traffic(const Plan& plan);
Size step_bytes(const Plan& plan);

}  // namespace tessera
