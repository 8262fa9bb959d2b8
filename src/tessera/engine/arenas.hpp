// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/base/view.hpp>
#include <tessera/plan/layout/units.hpp>

namespace tessera {

/// Parameters, or their gradients, of one rank: buckets one behind the other, as StatePlan places
/// them. What is sharded is kept as shares, and whole buckets of it exist only while they are used,
/// in a buffer that buckets take in turn. T: the state type, or that of copies.
template <class T>
class StateArena {
 public:
  /// Parameters of `state`; zero. Where layers use copies of them, they are never gathered.
  static StateArena parameters(const StatePlan& state);
  /// Those copies; zero.
  static StateArena copies(const StatePlan& state);
  /// Gradients of `state`; zero.
  static StateArena gradients(const StatePlan& state);

  /// What is kept: the shares of all buckets, or all whole buckets.
  const Vector<T>& flat() const { return flat_; }
  /// Whole buckets of what is sharded; empty where nothing is.
  const Vector<T>& buffer() const { return buffer_; }
  Vector<T> range(Range elements) const;  ///< of flat()
  /// The own part of a bucket where it is kept.
  Vector<T> share(Size bucket) const;
  /// A whole bucket where layers use it; of a sharded one, whatever its buffer holds at the time.
  Vector<T> whole(Size bucket) const;
  /// Elements of such a bucket.
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
