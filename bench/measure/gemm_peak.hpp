// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>

#include <tessera/comm/communicator.hpp>
#include <tessera/config/config.hpp>

namespace tessera::bench {

/// The type of a product. The precision is TF32 only if the device computes it, faster than
/// float32. Otherwise Gemm rounds the operands itself, and the peak does not include that.
struct GemmType {
  DType operands = DType::float32;
  MatmulPrecision precision = MatmulPrecision::strict;

  auto operator<=>(const GemmType&) const = default;
};
GemmType gemm_type(const Config& config);

/// Returns the FLOP/s of a square product of `gemm_size` rows on the slowest rank, in the best of
/// some repetitions. MFU is relative to it. Collective over `ranks`.
double gemm_peak(const Communicator& ranks, const GemmType& type, Size gemm_size, Size repetitions);

}  // namespace tessera::bench
