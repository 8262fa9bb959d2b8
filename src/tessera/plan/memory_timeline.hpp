// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <tessera/plan/plan.hpp>

namespace tessera {

/// Returns the memory of a rank during a step, in bytes: what is allocated (`memory`), the use of
/// it by each listed action, and the tensors of the frame that are alive in the action with the
/// largest use, the largest first (`peak`). All memory but the frame holds its contents from step
/// to step and is always in use. Of the frame, tensors are in use from their first to their last
/// action. `reaches` ends with the last of them, so its largest value is the whole memory, and
/// `in_use` leaves out the gaps between them.
nlohmann::json memory_timeline(const Plan& plan, Size rank);

}  // namespace tessera
