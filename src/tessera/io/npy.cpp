// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/io/npy.hpp>

namespace tessera {

std::string npy_header(DType type, const Shape& shape) {
  const char order = std::endian::native == std::endian::little ? '<' : '>';
  std::string text = fmt::format("{{'descr': '{}f{}', 'fortran_order': False, 'shape': ({},)}}",
                                 order, size_of(type), fmt::join(shape, ", "));
  constexpr std::size_t before = 10, unit = 64;
  text.append((unit - (before + text.size() + 1) % unit) % unit, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace tessera
