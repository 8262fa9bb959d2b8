// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/plan/collectives.hpp>

namespace tessera {

/// One comparison of checksums of 8 bytes between ranks that hold the same elements.
struct CheckCall {
  RankSet ranks = RankSet::replica;
  Range checksums;  ///< of the parameters in order, then of their moments
  /// Each checksum is sent twice, for the largest and for the smallest.
  Size payload_bytes() const { return 2 * checksums.count * 8; }
};

/// The calls of one check that replicas are equal. Shares are compared where they are replicated,
/// parameters that moments alone are sharded of on all ranks of the batch, and what is whole along
/// `model` there: buckets are equal on all its ranks, so gradients are added in one order and stay
/// equal to the bit. Copies of parameters in a shorter type are made anew in every step, and not
/// compared. Empty if nothing of the rank's stage is there twice.
std::vector<CheckCall> plan_replica_check(const Plan& plan, Size rank);

/// Bytes of the checksums on a rank: each once, and both limits of a comparison.
Size checksum_bytes(const Plan& plan, Size rank);

}  // namespace tessera
