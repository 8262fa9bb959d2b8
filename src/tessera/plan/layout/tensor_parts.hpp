// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/plan/plan.hpp>

namespace tessera {

/// The part of a parameter, its gradient or a moment that one rank holds.
struct TensorPart {
  Slot slot;
  Size moment = 0;  ///< number of the moment, from 0
  Piece piece;      ///< with which the rank computes
  Range kept;       ///< elements of the piece that the rank keeps, in row-major order
  Range owned;  ///< elements of the piece that the rank updates, which no other rank of its replica
                ///< with the same piece does
  bool counts = true;    ///< Plan::is_copy() is false
  bool is_first = true;  ///< the rank is the first along BucketPlan::replicas()
  Range place;           ///< place of `kept` in the flat buffer of the role, or of the moment
};

/// Returns the parts of the tensors of `role` on `rank`, in the order of StagePlan::slots.
std::vector<TensorPart> tensor_parts(const Plan& plan, Size rank, TensorRole role);

}  // namespace tessera
