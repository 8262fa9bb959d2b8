// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>

#include <tessera/base/element_hash.hpp>
#include <tessera/base/error.hpp>
#include <tessera/io/hdf5_file.hpp>

namespace tessera {

/// The attribute of an array or text: the sum of element_hash() over its elements, modulo 2^64.
/// Whatever is done to one element, the sum changes; the parts of several ranks add up.
inline constexpr const char* checksum_attribute = "checksum";

/// Of elements that are one behind the other in the array; `place`: of the first.
template <class T>
Size hash_of_run(const T* values, Size count, Size place) {
  std::uint64_t sum = 0;
  for (Size i = 0; i < count; ++i) sum += element_hash(values + i, place + i);
  return static_cast<Size>(sum);
}

inline Size hash_of_text(const std::string& text) {
  return hash_of_run(text.data(), static_cast<Size>(text.size()), 0);
}

/// Throws Error (wrong_result) for values with which no training can go on; `what` is one of them.
template <class T>
void check_finite(const std::string& what, const T* values, Size count) {
  bool all = true;
  for (Size i = 0; i < count; ++i) all &= std::isfinite(values[i]);
  if (!all) throw Error(ExitCode::wrong_result, "training diverged: {} is not finite", what);
}

/// Sums wrap around.
inline void add_hash(Size& sum, Size hash) {
  sum = static_cast<Size>(static_cast<std::uint64_t>(sum) + static_cast<std::uint64_t>(hash));
}

/// Throws Error unless `sum` is what the array was written with.
inline void check_hash(const Hdf5File& file, const std::string& path, const std::string& name,
                       Size sum) {
  if (file.attribute(name, checksum_attribute) != AttributeValue(sum))
    throw Error(ExitCode::usage, path + ": " + name + ": is damaged: its checksum differs");
}

}  // namespace tessera
