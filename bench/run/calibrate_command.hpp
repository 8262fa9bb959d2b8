// SPDX-License-Identifier: Apache-2.0
// The command calibrate.
#pragma once

#include <string>

#include <tessera/base/error.hpp>

#include "study/study.hpp"

namespace tessera::bench {

struct CalibrateOptions {
  std::string output{};  ///< machine file; its name is the machine's
  Size gemm_size = peak_gemm_size;
};

/// Measures the launch's ranks and writes a machine file for `simulate` and `tessera plan
/// --machine`. Throws Error (usage) on all ranks for a single rank, which has no links, for nodes
/// with different numbers of ranks, and for a file that exists or cannot be written. Collective.
ExitCode calibrate_machine(const CalibrateOptions& options);

}  // namespace tessera::bench
