// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/app/options.hpp>
#include <tessera/base/error.hpp>

namespace tessera {

/// `tessera plan`: prints the plan of a configuration's step. Starts neither MPI nor a device. The
/// number of ranks is what the configuration asks for: a mesh without -1, or world_size.
ExitCode plan_command(const PlanOptions& options);

}  // namespace tessera
