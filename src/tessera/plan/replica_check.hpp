// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/plan/collectives.hpp>

namespace tessera {

/// One collective over checksums of 8 bytes. Checksums of shares add up to that of the tensor.
struct CheckCall {
  RankSet ranks = RankSet::shard;
  bool compares = false;  ///< all ranks of the group must hold the same; else their sum is formed
  Range checksums;        ///< parameters in order, then their first moments, then the second ones
  /// A comparison sends each checksum twice, for the largest and for the smallest.
  Size payload_bytes() const { return (compares ? 2 : 1) * checksums.count * 8; }
};

/// The calls of one check that replicas are equal: sums over those that hold shares, comparisons
/// over those that hold the same, and over `model` of the parameters that are the same there. Empty
/// if nothing is there twice. Groups of one rank make no call.
std::vector<CheckCall> plan_replica_check(const Plan& plan);

/// Bytes of the checksums on a rank: each once, and both limits of a comparison.
Size checksum_bytes(const Plan& plan);

/// Whether a parameter is the same, to the bit, on every rank of `model`, by parameter in order: it
/// is whole there. Buckets are equal on all of them, so its gradient's terms are added in one
/// order.
std::vector<bool> same_along_model(const Plan& plan);

}  // namespace tessera
