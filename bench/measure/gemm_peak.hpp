// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>

#include <tessera/comm/communicator.hpp>
#include <tessera/config/config.hpp>

namespace tessera::bench {

/// TF32 where the device rounds to it, whose products are faster than those of float32. Otherwise
/// rounding is our own work, which the peak leaves out.
struct GemmType {
  DType operands = DType::float32;
  MatmulPrecision precision = MatmulPrecision::strict;

  auto operator<=>(const GemmType&) const = default;
};
GemmType gemm_type(const Config& config);

/// FLOP/s of a square product of `gemm_size` rows on the slowest rank, in the best of some
/// repetitions: what MFU is held against. Collective over `ranks`.
double gemm_peak(const Communicator& ranks, const GemmType& type, Size gemm_size, Size repetitions);

}  // namespace tessera::bench
