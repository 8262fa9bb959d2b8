// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <tessera/base/element_hash.hpp>
#include <tessera/base/error.hpp>

namespace tessera {

/// Returns the sum of element_hash() over contiguous elements, modulo 2^64. `place` is the index of
/// the first one in the array. A change of one element always changes the sum, and the parts of
/// several ranks add up.
template <class T>
std::uint64_t hash_of_run(const T* values, Size count, Size place) {
  std::uint64_t sum = 0;
  for (Size i = 0; i < count; ++i) sum += element_hash(values + i, place + i);
  return sum;
}

inline std::uint64_t hash_of_text(const std::string& text) {
  return hash_of_run(text.data(), static_cast<Size>(text.size()), 0);
}

/// Throws Error (wrong_result) for a value that is not finite. `what` names it in the message.
template <class T>
void check_finite(const std::string& what, const T* values, Size count) {
  bool all = true;
  for (Size i = 0; i < count; ++i) all &= std::isfinite(values[i]);
  if (!all) throw Error(ExitCode::wrong_result, "training diverged: {} is not finite", what);
}

}  // namespace tessera
