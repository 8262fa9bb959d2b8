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
          state.sharding.held_parameters(state.has_copies),
          state.has_copies ? 0 : state.gathered,
          &BucketPlace::gathered_begin};
}

template <class T>
StateArena<T> StateArena<T>::copies(const StatePlan& state) {
  return {"tessera::parameter_copies",
          "tessera::gathered_units",
          state,
          state.sharding.held_parameters(false),
          state.gathered,
          &BucketPlace::gathered_begin};
}

template <class T>
StateArena<T> StateArena<T>::gradients(const StatePlan& state) {
  return {"tessera::gradients",
          "tessera::unit_gradients",
          state,
          state.sharding.held_gradients(),
          state.bucket_gradients,
          &BucketPlace::gradient_begin,
          state.rows_of_gradients(),
          state.gradient_rows};
}

template <class T>
StateArena<T>::StateArena(const std::string& label, const std::string& buffer_label,
                          const StatePlan& state, Held held, Size buffer, Size BucketPlace::*begin,
                          Size flat_rows, Size buffer_rows)
    : state_(state),
      held_(held),
      begin_(begin),
      row_elements_(held == Held::whole ? state.whole : buffer),
      flat_(allocate_zeros<T>(label, flat_rows * state.elements(held))),
      buffer_(allocate_zeros<T>(buffer_label, held == Held::whole ? 0 : buffer_rows * buffer)) {
  flat_ = Kokkos::subview(flat_, std::pair(Size{0}, state.elements(held)));
}

template <class T>
Vector<T> StateArena<T>::range(Range elements) const {
  return alias_vector(flat_.data() + elements.begin, elements.count);
}

template <class T>
Vector<T> StateArena<T>::kept(Size bucket, Range part) const {
  return range(state_.place_of(bucket, part, held_));
}

template <class T>
Vector<T> StateArena<T>::whole(Size bucket) const {
  return part(bucket, {0, state_.buckets[bucket].whole.count});
}

template <class T>
Vector<T> StateArena<T>::part(Size bucket, Range elements, Size row) const {
  const BucketPlace& place = state_.buckets[bucket];
  T* const whole =
      held_ == Held::whole ? flat_.data() + place.whole.begin : buffer_.data() + place.*begin_;
  return alias_vector(whole + row * row_elements_ + elements.begin, elements.count);
}

TESSERA_INSTANTIATE_CLASS(StateArena);

}  // namespace tessera
