// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include <tessera/engine/plan_communicators.hpp>
#include <tessera/optim/newton_schulz.hpp>
#include <tessera/plan/orthogonalization.hpp>
#include <tessera/random/fill.hpp>

namespace tessera {

/// Moves the directions of muon's matrices to where they are whole, and orthogonalizes them. The
/// communicators must outlive this object. T: float, double.
template <class T>
class Orthogonalization {
 public:
  Orthogonalization(const Plan& plan, Size rank, const PlanCommunicators& communicators);

  /// Returns the directions of elements of the rank's share of a bucket, counted from its start;
  /// after the last action but one, those of the orthogonal matrices.
  Vector<T> directions(Size bucket, Range elements) const;
  void move(const MoveDirections& move) const;
  void orthogonalize(Size bucket) const;

 private:
  /// A piece of a matrix: `elements` in held_, and their places in the matrix.
  struct Part {
    Range elements;
    BlockRun place;
  };
  struct Matrix {
    Size rows, cols;
    std::vector<Part> parts{};
    Size own = 0;  ///< part of this rank
  };
  struct Bucket {
    MatricesPlan plan;
    BucketPlace place;
    AxisSet updates;  ///< BucketPlan::updates
    OrthogonalizationScratch::Place at;
    std::vector<Matrix> matrices;
  };
  Vector<T> held(const Bucket& of) const;
  Vector<T> own(const Bucket& of) const;

  const PlanCommunicators& communicators_;
  AxisSet model_;
  Size coordinate_;  ///< along `model`
  std::map<Size, Bucket> buckets_;
  OrthogonalizationScratch scratch_;
  Vector<T> held_, own_;
  NewtonSchulz<T> newton_schulz_;
};

}  // namespace tessera
