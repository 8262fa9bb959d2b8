// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tessera/base/placement.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// A limit on the bytes of a header.
inline constexpr Size longest_npy_header = 1 << 16;

/// The header of an array in NumPy's format, versions 1.0 to 3.0 (numpy.lib.format).
struct NpyHeader {
  std::string type;  ///< "<f4"; "[...]" for a structure
  bool is_fortran_order = false;
  Shape shape;
  Size bytes = 0;  ///< length of the header; the values follow it
};

/// Parses the first `longest_npy_header` bytes of a file, or all of a shorter one. Returns none
/// unless they begin with a complete header.
std::optional<NpyHeader> parse_npy_header(std::string_view start);

/// Returns the header of a row-major array of float32 or float64 in NumPy's format 1.0: magic
/// string, version, length, and a dictionary. It is padded to a multiple of 64 bytes.
std::string npy_header(DType type, const Shape& shape);

}  // namespace tessera
