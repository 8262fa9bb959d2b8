// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/plan/collectives.hpp>

namespace tessera {

/// One comparison of checksums of 8 bytes between ranks that hold the same elements.
struct CheckCall {
  RankSet ranks = RankSet::replica;
  Range checksums;  ///< parameters in order, then their moments
  /// Each checksum is sent twice: one all-reduce computes its maximum and its minimum.
  Size payload_bytes() const { return 2 * checksums.count * 8; }
};

/// Returns the calls of one check of replicas; empty if no other rank holds a copy.
///
/// - Shares are compared over RankSet::replica.
/// - If only moments are sharded, parameters are compared over RankSet::batch.
/// - Tensors that are replicated along `model` are compared over RankSet::model. Buckets have equal
/// sizes on all ranks of `model`, so gradients are added in one order and stay equal to the bit.
/// - Copies of parameters in the compute type are made anew in every step and are not compared.
std::vector<CheckCall> plan_replica_check(const Plan& plan, Size rank);

/// Returns the bytes of the checksums on a rank: the checksum and the two limits of a comparison
/// for each tensor.
Size checksum_bytes(const Plan& plan, Size rank);

}  // namespace tessera
