// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>

#include <tessera/base/element_hash.hpp>
#include <tessera/base/error.hpp>
#include <tessera/io/hdf5_file.hpp>

namespace tessera {

/// The attribute that holds the sum of element_hash() over the elements, modulo 2^64. A change of
/// one element always changes the sum, and the parts of several ranks add up.
inline constexpr const char* checksum_attribute = "checksum";

/// Returns the sum over contiguous elements. `place` is the index of the first one in the array.
template <class T>
Size hash_of_run(const T* values, Size count, Size place) {
  std::uint64_t sum = 0;
  for (Size i = 0; i < count; ++i) sum += element_hash(values + i, place + i);
  return static_cast<Size>(sum);
}

inline Size hash_of_text(const std::string& text) {
  return hash_of_run(text.data(), static_cast<Size>(text.size()), 0);
}

/// Throws Error (wrong_result) for a value that is not finite. `what` names it in the message.
template <class T>
void check_finite(const std::string& what, const T* values, Size count) {
  bool all = true;
  for (Size i = 0; i < count; ++i) all &= std::isfinite(values[i]);
  if (!all) throw Error(ExitCode::wrong_result, "training diverged: {} is not finite", what);
}

/// Adds modulo 2^64.
inline void add_hash(Size& sum, Size hash) {
  sum = static_cast<Size>(static_cast<std::uint64_t>(sum) + static_cast<std::uint64_t>(hash));
}

/// Throws Error (usage) if `sum` differs from the checksum of the array.
inline void check_hash(const Hdf5File& file, const std::string& path, const std::string& name,
                       Size sum) {
  if (file.attribute(name, checksum_attribute) != AttributeValue(sum))
    throw Error(ExitCode::usage, path + ": " + name + ": is damaged: its checksum differs");
}

}  // namespace tessera
