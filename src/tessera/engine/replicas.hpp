// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <tessera/engine/local_tensors.hpp>
#include <tessera/plan/replica_check.hpp>

namespace tessera {

/// Checks that copies of parameters and moments on several ranks are bitwise equal. Compares 32-bit
/// checksums that depend on the bits and the place of each element. T: the compute type.
template <class T>
class ReplicaCheck {
 public:
  /// Allocates memory for the checksums.
  ReplicaCheck(const Plan& plan, const Mesh& mesh, const Engine<T>& engine);

  /// Makes the calls of plan_replica_check(). If a copy differs, throws the same Error
  /// (wrong_result) on all ranks. Its text names the number of steps, `step`, the first tensor that
  /// differs and the ranks with each checksum. Collective over the mesh.
  void operator()(Size step) const;

 private:
  void sum_up() const;
  bool all_equal(const CheckCall& call) const;
  [[noreturn]] void report(Size step) const;

  Mesh mesh_;
  PlanCommunicators communicators_;
  std::vector<LocalTensor<StateOf<T>>> tensors_;  ///< parameters, then moments
  std::vector<CheckCall> calls_;
  Vector<std::int64_t> sums_;  ///< by tensor
  Vector<std::int64_t>
      limits_;  ///< checksums of a comparison, then their negatives; reduced to maxima
};

/// Writes the checksum of a run of elements to sums(position): the sum of a hash of each element's
/// bits and place, modulo 2^32. The checksums of the parts of a tensor add up to that of the whole.
/// `first` is the place of the run's first element.
template <class T>
void checksum(const Vector<const T>& v, Size first, const Vector<std::int64_t>& sums,
              Size position);

}  // namespace tessera
