// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/comm/communicator.hpp>
#include <tessera/plan/plan.hpp>

#include "measure/case_run.hpp"
#include "results/case_result.hpp"

namespace tessera::bench {

/// Returns planned and measured traffic of the rank that sends most, and whether they agree on
/// every rank. Collective.
Traffic verified_traffic(const Communicator& ranks, const MeshShape& mesh,
                         const Verification& verification);

/// Returns the planned traffic of a step on rank 0.
Traffic planned_traffic(const Plan& plan);

/// Adds the values per step to each row: planned calls and bytes, measured seconds, bandwidths.
void add_call_times(Traffic& traffic, const Plan& plan, const Breakdown& breakdown);

}  // namespace tessera::bench
