// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/comm/communicator.hpp>

namespace tessera::bench {

/// FLOP/s of a square product of `gemm_size` rows on the slowest rank, in the best of some
/// repetitions: what MFU is held against. Collective over `ranks`.
double gemm_peak(const Communicator& ranks, DType dtype, Size gemm_size, Size repetitions);

}  // namespace tessera::bench
