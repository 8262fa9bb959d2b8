// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <tessera/base/alias.hpp>
#include <tessera/engine/arenas.hpp>

namespace tessera {

template <class T>
StateArena<T> StateArena<T>::parameters(const StatePlan& state) {
  return {"tessera::parameters",
          "tessera::gathered_units",
          state,
          state.parameters_in_shares(),
          state.has_copies ? 0 : state.gathered,
          &BucketPlace::gathered_begin};
}

template <class T>
StateArena<T> StateArena<T>::copies(const StatePlan& state) {
  return {"tessera::parameter_copies",
          "tessera::gathered_units",
          state,
          state.sharding.parameters,
          state.gathered,
          &BucketPlace::gathered_begin};
}

template <class T>
StateArena<T> StateArena<T>::gradients(const StatePlan& state) {
  return {"tessera::gradients",      "tessera::unit_gradients", state,
          state.sharding.gradients,  state.bucket_gradients,    &BucketPlace::gradient_begin,
          state.rows_of_gradients(), state.gradient_rows};
}

template <class T>
StateArena<T>::StateArena(const std::string& label, const std::string& buffer_label,
                          const StatePlan& state, bool sharded, Size buffer,
                          Size BucketPlace::*begin, Size flat_rows, Size buffer_rows)
    : row_elements_(sharded ? buffer : state.whole),
      flat_(allocate_zeros<T>(label, flat_rows * (sharded ? state.shares : state.whole))),
      buffer_(allocate_zeros<T>(buffer_label, sharded ? buffer_rows * buffer : 0)) {
  flat_ = Kokkos::subview(flat_, std::pair(Size{0}, sharded ? state.shares : state.whole));
  for (const BucketPlace& place : state.buckets) {
    T* const whole = !sharded     ? flat_.data() + place.whole.begin
                     : buffer > 0 ? buffer_.data() + place.*begin
                                  : nullptr;
    T* const share = sharded ? flat_.data() + place.share_begin : whole + place.share.begin;
    buckets_.push_back({whole, share, place.whole.count, place.share.count});
  }
}

template <class T>
Vector<T> StateArena<T>::range(Range elements) const {
  return alias_vector(flat_.data() + elements.begin, elements.count);
}

template <class T>
Vector<T> StateArena<T>::share(Size bucket) const {
  return alias_vector(buckets_[bucket].share, buckets_[bucket].share_elements);
}

template <class T>
Vector<T> StateArena<T>::whole(Size bucket) const {
  return alias_vector(buckets_[bucket].whole, buckets_[bucket].whole_elements);
}

template <class T>
Vector<T> StateArena<T>::part(Size bucket, Range elements, Size row) const {
  T* const whole = buckets_[bucket].whole + row * row_elements_;
  return alias_vector(whole + elements.begin, elements.count);
}

TESSERA_INSTANTIATE_CLASS(StateArena);

}  // namespace tessera
