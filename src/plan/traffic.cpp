// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/traffic.hpp>

namespace tessera {

std::vector<LedgerRow> planned_traffic(const std::vector<PlannedRun>& runs) {
  Ledger ledger;
  for (const PlannedRun& run : runs) {
    for (const CollectivePlan& collective : run.plan->collectives) {
      const Size times = collective.cadence == Cadence::step ? run.steps : run.epochs;
      Ledger::Count& count =
          ledger.axis(collective.axis)[static_cast<std::size_t>(collective.operation)];
      count.calls += times * collective.calls;
      count.payload_bytes += times * collective.payload_bytes;
    }
  }
  return ledger.rows();
}

}  // namespace tessera
