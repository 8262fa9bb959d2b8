// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/traffic.hpp>

namespace tessera {

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

Size step_bytes(const Plan& plan, Size rank) {
  Size bytes = 0;
  for (const CollectivePlan& row : plan.collectives(rank))
    if (row.cadence == Cadence::step) bytes += row.payload_bytes;
  return bytes;
}

}  // namespace tessera
