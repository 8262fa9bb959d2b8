// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <tessera/base/view.hpp>
#include <tessera/plan/layout/units.hpp>

namespace tessera {

/// The memory of the parameters or gradients of one rank, at the places of StatePlan. If the role
/// is sharded, the arena keeps the rank's share of each bucket, and buckets use a second buffer in
/// turn while they are whole. Else it keeps whole buckets. Copies of an arena share the memory. T:
/// the state type, or the compute type for copies of parameters.
template <class T>
class StateArena {
 public:
  /// Allocates the parameters, set to zero. If layers use copies, no buffer is allocated, because
  /// only the copies are gathered.
  static StateArena parameters(const StatePlan& state);
  /// Allocates the copies of the parameters in the compute type, set to zero.
  static StateArena copies(const StatePlan& state);
  /// Allocates the gradients, set to zero, with the rows of StatePlan. All functions but part()
  /// return the first one.
  static StateArena gradients(const StatePlan& state);

  /// Returns the elements that the rank keeps: its shares of all buckets, or all whole buckets.
  const Vector<T>& flat() const { return flat_; }
  /// Returns the buffer of whole buckets; empty if the role is not sharded.
  const Vector<T>& buffer() const { return buffer_; }
  /// Returns a range of elements of flat().
  Vector<T> range(Range elements) const;
  /// Returns the elements of a part of a bucket that flat() has.
  Vector<T> kept(Size bucket, Range part) const;
  /// Returns a whole bucket. If the role is sharded, its values are valid only between the gather
  /// or the computation of the bucket and the next use of its place in buffer().
  Vector<T> whole(Size bucket) const;
  /// Returns a range of elements of a row of a whole bucket; the validity is that of whole().
  Vector<T> part(Size bucket, Range elements, Size row = 0) const;

 private:
  StateArena(const std::string& label, const std::string& buffer_label, const StatePlan& state,
             Held held, Size buffer, Size BucketPlace::*begin, Size flat_rows = 1,
             Size buffer_rows = 1);

  StatePlan state_;
  Held held_;                 ///< in flat()
  Size BucketPlace::*begin_;  ///< of whole buckets in buffer()
  Size row_elements_;         ///< from a row of whole buckets to the next
  Vector<T> flat_;
  Vector<T> buffer_;
};

}  // namespace tessera
