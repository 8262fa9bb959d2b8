// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/app/options.hpp>
#include <tessera/base/runtime.hpp>

namespace tessera {

/// `tessera inspect`: shows, on rank 0, which part of every tensor each rank of this launch holds.
/// Collective.
ExitCode inspect_command(Runtime& runtime, const InspectOptions& options);

}  // namespace tessera
