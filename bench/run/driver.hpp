// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/process/runtime.hpp>

#include "run/selection.hpp"

namespace tessera::bench {

/// Runs the cases of a study that this launch has enough ranks for, and those only that have no
/// result yet. Collective over all ranks of the job. A case that fails is recorded, and the next
/// one follows; the job ends in its middle only where a rank cannot be got back.
ExitCode run_study(Runtime& runtime, const RunOptions& options);

/// The same selection, printed. Needs neither MPI nor a device.
ExitCode show_selection(const RunOptions& options, Size ranks);

}  // namespace tessera::bench
