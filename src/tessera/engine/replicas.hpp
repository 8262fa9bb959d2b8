// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <tessera/engine/local_tensors.hpp>
#include <tessera/plan/replica_check.hpp>

namespace tessera {

/// Checks that copies of parameters and moments on several ranks are bitwise equal. Compares the
/// low 32 bits of their digests. T: the compute type.
template <class T>
class ReplicaCheck {
 public:
  /// Allocates memory for the digests. The engine must outlive this object.
  ReplicaCheck(const Plan& plan, const Mesh& mesh, const Engine<T>& engine);

  /// Makes the calls of plan_replica_check(). If a copy differs, throws the same Error
  /// (wrong_result) on all ranks. Its text names the number of steps, `step`, the first tensor that
  /// differs and the ranks with each checksum. Collective over the mesh.
  void operator()(Size step) const;

 private:
  bool all_equal(const CheckCall& call) const;
  [[noreturn]] void report(Size step) const;

  Mesh mesh_;
  ParameterLayout layout_;
  PlanCommunicators communicators_;
  const Engine<T>& engine_;
  std::vector<TensorPart> tensors_;  ///< parameters, then moments
  std::vector<CheckCall> calls_;
  Vector<std::int64_t> digests_;  ///< by tensor
  Vector<std::int64_t>
      limits_;  ///< checksums of a comparison, then their negatives; reduced to maxima
};

}  // namespace tessera
