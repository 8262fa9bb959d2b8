// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/comm/ledger.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

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

/// Payload bytes of all calls that `rank` makes in one step.
Size step_bytes(const Plan& plan, Size rank);

}  // namespace tessera
