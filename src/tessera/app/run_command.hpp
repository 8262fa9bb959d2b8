// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/app/options.hpp>
#include <tessera/base/runtime.hpp>

namespace tessera {

/// `tessera run`: trains as the configuration says and reports on rank 0. Collective. Returns
/// wrong_result, on every rank, if one rank's traffic or memory was not what the plan says.
ExitCode run_command(Runtime& runtime, const TrainOptions& options);

}  // namespace tessera
