// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/io/npy_header.hpp>

namespace tessera {
namespace {

/// Parses a Python literal from its front. Each function returns false if another token is next.
class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}

  bool take(std::string_view token) {
    skip_space();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }

  bool take_string(std::string& value) {
    skip_space();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return false;
    const std::size_t end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) return false;
    value = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return true;
  }

  /// Takes a list with any content.
  bool take_list(std::string& value) {
    skip_space();
    if (!text_.starts_with('[')) return false;
    Size depth = 0;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      depth += text_[i] == '[' ? 1 : text_[i] == ']' ? -1 : 0;
      if (depth > 0) continue;
      value = text_.substr(0, i + 1);
      text_.remove_prefix(i + 1);
      return true;
    }
    return false;
  }

  bool take_bool(bool& value) {
    value = take("True");
    return value || take("False");
  }

  bool take_shape(Shape& shape) {
    shape.clear();
    if (!take("(")) return false;
    while (!take(")")) {
      skip_space();
      Size extent = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) return false;
      text_.remove_prefix(end - text_.data());
      shape.push_back(extent);
      if (!take(",")) return take(")");
    }
    return true;
  }

 private:
  void skip_space() { text_.remove_prefix(std::min(text_.find_first_not_of(" \n"), text_.size())); }
  std::string_view text_;
};

/// Parses {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
bool parse_dictionary(Literal text, NpyHeader& header) {
  bool has_type = false, has_order = false, has_shape = false;
  if (!text.take("{")) return false;
  while (!text.take("}")) {
    std::string key;
    if (!text.take_string(key) || !text.take(":")) return false;
    bool* const seen = key == "descr"           ? &has_type
                       : key == "fortran_order" ? &has_order
                       : key == "shape"         ? &has_shape
                                                : nullptr;
    if (seen == &has_type)
      *seen = text.take_string(header.type) || text.take_list(header.type);
    else if (seen == &has_order)
      *seen = text.take_bool(header.is_fortran_order);
    else if (seen == &has_shape)
      *seen = text.take_shape(header.shape);
    if (seen == nullptr || !*seen) return false;
    if (text.take(",")) continue;
    if (!text.take("}")) return false;
    break;
  }
  return has_type && has_order && has_shape;
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
  if (!parse_dictionary(Literal(start.substr(begin, length)), header)) return std::nullopt;
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
