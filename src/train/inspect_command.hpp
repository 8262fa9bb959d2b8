// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/runtime.hpp>
#include <tessera/train/options.hpp>

namespace tessera {

/// `tessera inspect`: shows, on rank 0, which part of every tensor each rank of this launch holds.
/// Collective.
ExitCode inspect_command(Runtime& runtime, const InspectOptions& options);

}  // namespace tessera
