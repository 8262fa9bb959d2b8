// SPDX-License-Identifier: Apache-2.0
// Messages of Protocol Buffers (protobuf.dev/programming-guides/encoding): the bytes of their
// fields, each a key, number * 8 + wire type, and a value.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/base/types.hpp>

namespace tessera {

/// Returns the bytes of an unsigned number, the lowest first.
template <class T>
std::string little_endian(T number) {
  std::string bytes(sizeof(T), '\0');
  for (std::size_t i = 0; i < sizeof(T); ++i)
    bytes[i] = static_cast<char>((number >> (8 * i)) & 0xff);
  return bytes;
}

/// Returns a number in groups of 7 bits, the lowest first. All but the last have the high bit set.
inline std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number > 0x7f; number >>= 7) bytes += static_cast<char>((number & 0x7f) | 0x80);
  return bytes + static_cast<char>(number);
}

/// Returns a field of an integer type, bool or enum.
inline std::string integer_field(std::uint64_t number, Size value) {
  return varint(number * 8) + varint(static_cast<std::uint64_t>(value));
}
inline std::string double_field(std::uint64_t number, double value) {
  return varint(number * 8 + 1) + little_endian(std::bit_cast<std::uint64_t>(value));
}
inline std::string float_field(std::uint64_t number, float value) {
  return varint(number * 8 + 5) + little_endian(std::bit_cast<std::uint32_t>(value));
}
/// Returns a field that is a string, a message, or a packed list of numbers.
inline std::string bytes_field(std::uint64_t number, std::string_view value) {
  return varint(number * 8 + 2) + varint(value.size()) + std::string(value);
}

}  // namespace tessera
