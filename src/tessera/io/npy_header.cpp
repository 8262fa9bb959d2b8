// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <tessera/io/npy_header.hpp>

namespace tessera {
namespace {

/// Rewrites a Python literal, such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), },
/// as JSON, which has neither tuples nor a comma before a closing bracket.
std::string json_of(std::string_view literal) {
  std::string json;
  for (char c : literal) {
    if (c == ')') c = ']';
    if (c == ']' || c == '}')
      if (const std::size_t last = json.find_last_not_of(" \n");
          last != std::string::npos && json[last] == ',')
        json[last] = ' ';
    json += c == '(' ? '[' : c == '\'' ? '"' : c;
  }
  for (const auto& [python, text] : {std::pair("True", "true"), std::pair("False", "false")})
    if (const std::size_t at = json.find(python); at != std::string::npos)
      json.replace(at, std::strlen(python), text);
  return json;
}

/// Fills in all but the length of the header.
bool parse_dictionary(std::string_view literal, NpyHeader& header) {
  const auto json = nlohmann::json::parse(json_of(literal), nullptr, false);
  for (const char* key : {"descr", "fortran_order", "shape"})
    if (!json.contains(key)) return false;
  const auto &type = json["descr"], &order = json["fortran_order"], &shape = json["shape"];
  const bool is_shape =
      shape.is_array() && std::ranges::all_of(shape, [](const auto& extent) {
        return extent.is_number_unsigned() &&
               extent.template get<std::uint64_t>() <= std::numeric_limits<Size>::max();
      });
  if (json.size() != 3 || !(type.is_string() || type.is_array()) || !order.is_boolean() ||
      !is_shape)
    return false;
  header.type = type.is_string() ? type.get<std::string>() : "[...]";
  header.is_fortran_order = order;
  header.shape = shape.get<Shape>();
  return true;
}

}  // namespace

std::optional<NpyHeader> parse_npy_header(std::string_view start) {
  constexpr std::string_view magic = "\x93NUMPY";
  if (!start.starts_with(magic) || start.size() < magic.size() + 2) return std::nullopt;
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(start[i]));
  };
  const std::size_t version = byte(magic.size());
  if (version < 1 || version > 3) return std::nullopt;
  // The length of the dictionary is little-endian: two bytes in version 1, four in the others.
  const std::size_t before = magic.size() + 2, begin = before + (version == 1 ? 2 : 4);
  if (start.size() < begin) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = begin; i > before; --i) length = length << 8 | byte(i - 1);
  if (length > start.size() - begin) return std::nullopt;
  NpyHeader header;
  header.bytes = static_cast<Size>(begin + length);
  if (!parse_dictionary(start.substr(begin, length), header)) return std::nullopt;
  return header;
}

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
