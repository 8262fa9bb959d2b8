// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/comm/ledger.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// Steps and epochs that were, or will be, run under one plan.
struct PlannedRun {
  const Plan* plan = nullptr;
  Size steps = 0;
  Size epochs = 0;
};

/// What every rank's ledger holds after these runs, in the ledger's own order; measured traffic
/// must be equal to it.
std::vector<LedgerRow> planned_traffic(const std::vector<PlannedRun>& runs);

}  // namespace tessera
