// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/error.hpp>

namespace tessera {
namespace {

/// Returns the last place up to `at` that is not inside a UTF-8 character.
std::size_t character_before(std::string_view text, std::size_t at) {
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return at;
}

}  // namespace

std::string excerpt(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  const std::size_t begin = character_before(text, most * 3 / 5);
  const std::size_t end = character_before(text, text.size() - most * 3 / 10);
  return fmt::format("{}...{} ({} bytes)", text.substr(0, begin), text.substr(end), text.size());
}

}  // namespace tessera
