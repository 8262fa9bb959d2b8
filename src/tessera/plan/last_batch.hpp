// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/plan/plan.hpp>

namespace tessera {

/// The plan of an epoch's last batch, which may be smaller than the others.
Plan plan_last_batch(const Plan& plan);

}  // namespace tessera
