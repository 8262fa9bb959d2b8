// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <tessera/engine/local_tensors.hpp>
#include <tessera/plan/replica_check.hpp>

namespace tessera {

/// Checks that copies of parameters and moments on several ranks are equal to the bit. Compares
/// 32-bit checksums that depend on each element's value and place.
template <class T>
class ReplicaCheck {
 public:
  ReplicaCheck(const Plan& plan, const Mesh& mesh, const Engine<T>& engine);

  /// Makes the calls of plan_replica_check(). If a copy differs, throws the same Error
  /// (wrong_result) on all ranks; it names the first tensor that differs and the ranks with each
  /// checksum. Collective over the mesh. `step`: number of steps made, for the message.
  void operator()(Size step) const;

 private:
  void sum_up() const;
  bool all_equal(const CheckCall& call) const;
  [[noreturn]] void report(Size step) const;

  Mesh mesh_;
  PlanCommunicators communicators_;
  std::vector<LocalTensor<StateOf<T>>> tensors_;  ///< parameters, then moments
  std::vector<CheckCall> calls_;
  Vector<std::int64_t> sums_;    ///< by tensor
  Vector<std::int64_t> limits_;  ///< maximum and minimum of a comparison
};

/// Adds up a hash of (bits, place) over a run of elements, modulo 2^32, into sums(position). Sums
/// of parts add up to that of the whole. `first`: place of the run's first element.
template <class T>
void checksum(const Vector<const T>& v, Size first, const Vector<std::int64_t>& sums,
              Size position);

}  // namespace tessera
