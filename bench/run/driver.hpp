// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/process/runtime.hpp>

#include "run/selection.hpp"

namespace tessera::bench {

/// Runs the cases of a study that have no result yet and that this launch has enough ranks for. A
/// case that fails is recorded, and the next one runs; the job ends early only if a rank is stuck.
/// Collective over all ranks of the job.
ExitCode run_study(Runtime& runtime, const RunOptions& options);

/// Prints the cases that run_study() would run. Needs neither MPI nor a device.
ExitCode show_selection(const RunOptions& options, Size ranks);

}  // namespace tessera::bench
