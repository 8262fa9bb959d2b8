// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/base/view.hpp>
#include <tessera/plan/layout/units.hpp>

namespace tessera {

/// The parameters or gradients of one rank: consecutive buckets at the places of StatePlan. A
/// sharded role keeps shares only; its whole buckets take turns in a buffer. T: the state type, or
/// the type of copies.
template <class T>
class StateArena {
 public:
  /// Allocates the parameters of `state`, set to zero. If layers use copies, the parameters are
  /// never gathered.
  static StateArena parameters(const StatePlan& state);
  /// Allocates the copies of the parameters in the compute type, set to zero.
  static StateArena copies(const StatePlan& state);
  /// Allocates the gradients of `state`, set to zero.
  static StateArena gradients(const StatePlan& state);

  /// Returns the elements that outlive a step: the shares of all buckets, or all whole buckets.
  const Vector<T>& flat() const { return flat_; }
  /// Returns the buffer of whole buckets; empty if the role is not sharded.
  const Vector<T>& buffer() const { return buffer_; }
  Vector<T> range(Range elements) const;  ///< elements of flat()
  /// Returns the rank's share of a bucket in flat().
  Vector<T> share(Size bucket) const;
  /// Returns a whole bucket. If the role is sharded, the buffer holds the bucket that was gathered
  /// or computed last.
  Vector<T> whole(Size bucket) const;
  /// Returns elements of a whole bucket.
  Vector<T> part(Size bucket, Range elements) const;

 private:
  struct Place {
    T* whole;
    T* share;
    Size elements, shared;
  };
  StateArena(const std::string& label, const std::string& buffer_label, const StatePlan& state,
             bool sharded, Size buffer, Size BucketPlace::*begin);

  Vector<T> flat_;
  Vector<T> buffer_;
  std::vector<Place> buckets_;
};

}  // namespace tessera
