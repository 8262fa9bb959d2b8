// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tessera/base/placement.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// Bytes of a file that hold its header, if it has an array of numbers.
inline constexpr Size longest_npy_header = 1 << 16;

/// What NumPy's format says before the values (numpy.lib.format, versions 1.0 to 3.0).
struct NpyHeader {
  std::string type;  ///< "<f4"; of a structure, the list of its fields
  bool is_fortran_order = false;
  Shape shape;
  Size bytes = 0;  ///< where the values begin
};

/// `start`: the beginning of the file, as far as it has `longest_npy_header` bytes. None unless it
/// begins with a whole header of at most that length.
std::optional<NpyHeader> parse_npy_header(std::string_view start);

/// What precedes the values of a row-major array of float32 or float64 in NumPy's format 1.0: magic
/// string, version, length of the rest, and a dictionary padded to a multiple of 64 bytes.
std::string npy_header(DType type, const Shape& shape);

}  // namespace tessera
