// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/base/split.hpp>
#include <tessera/plan/collectives.hpp>

namespace tessera {

/// One all-reduce that compares checksums of 8 bytes between ranks that hold the same elements.
struct CheckCall {
  AxisSet ranks{};  ///< a tensor that one of these axes splits has no copy there
  Range checksums;  ///< of those of all parameters in order, then of all moments
  /// Returns the payload. Each checksum is sent twice, to compute its maximum and its minimum.
  Size payload_bytes() const { return 2 * checksums.count * 8; }
};

/// Returns the calls of one check of replicas; empty if no other rank holds a copy.
///
/// - Parameters and moments are compared over the ranks that keep the same
/// (BucketPlan::replicas()).
/// - Tensors that are replicated along `model` are also compared over that axis. They must be
///   bitwise equal: buckets have equal sizes on all ranks of `model`, so all of these ranks add
///   gradients in the same order.
/// - Copies of parameters in the compute type are not compared, because every step makes them anew.
std::vector<CheckCall> plan_replica_check(const Plan& plan, Size rank);

/// Returns the bytes of device memory of a check on a rank: for each tensor its checksum, and the
/// maximum and the minimum that a comparison computes.
Size checksum_bytes(const Plan& plan, Size rank);

}  // namespace tessera
