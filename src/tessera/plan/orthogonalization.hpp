// SPDX-License-Identifier: Apache-2.0
// The matrices that each rank orthogonalizes with muon, and the elements that this moves.
#pragma once

#include <vector>

#include <tessera/optim/newton_schulz_products.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// The matrices of a bucket that one rank orthogonalizes.
struct MatricesPlan {
  /// Elements of the bucket, from its start, whose directions the rank holds to do so.
  Range held;
  std::vector<Size> matrices{};  ///< positions in ParameterLayout::parameters; in `held`
  /// The ranks of `model` if it splits a matrix of the bucket; else 1. Each of them holds the
  /// directions of all, one rank's after another's.
  Size pieces = 1;
  /// With MuonLayout::exchange: elements of its share to the rank of each owner, and of `held` from
  /// each rank. Empty if no all-to-all is needed.
  std::vector<Size> sent{}, received{};
};
MatricesPlan plan_matrices(const Plan& plan, Size bucket, Size rank);

/// Elements of memory for the matrices of a rank's stage.
struct OrthogonalizationScratch {
  Size held = 0;  ///< MatricesPlan::held of all pieces
  Size own = 0;   ///< the share, before and after an all-to-all
  /// The first elements of each bucket. Buckets that are orthogonalized at the same time do not
  /// share memory.
  struct Place {
    Size held = 0, own = 0;
  };
  std::vector<Place> places{};
  NewtonSchulzScratch products{};
};
OrthogonalizationScratch orthogonalization_scratch(const Plan& plan, Size rank);

/// Returns the FLOPs of a step's products on all ranks.
double orthogonalization_flops(const Plan& plan);

}  // namespace tessera
