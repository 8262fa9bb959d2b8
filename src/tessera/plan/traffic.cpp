// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/traffic.hpp>

namespace tessera {
namespace {

Size times(const PlannedRun& run, Cadence cadence) {
  switch (cadence) {
    case Cadence::step:
      return run.steps;
    case Cadence::epoch:
      return run.epochs;
    case Cadence::check:
      return run.checks;
  }
  return 0;
}

}  // namespace

std::vector<LedgerRow> planned_traffic(const std::vector<PlannedRun>& runs, Size rank) {
  Ledger ledger;
  for (const PlannedRun& run : runs) {
    for (const CollectivePlan& collective : run.plan->collectives(rank)) {
      const Size n = times(run, collective.cadence);
      Ledger::Count& count =
          ledger.axis(collective.axis)[static_cast<std::size_t>(collective.operation)];
      count.calls += n * collective.calls;
      count.payload_bytes += n * collective.payload_bytes;
    }
  }
  return ledger.rows();
}

}  // namespace tessera
