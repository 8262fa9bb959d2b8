// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>

#include <tessera/base/error.hpp>
#include <tessera/base/for_each.hpp>

namespace tessera {

Size serial_below() {
  constexpr const char* name = "TESSERA_SERIAL_BELOW";
  Size elements = 16384;
  if (const char* value = std::getenv(name)) {
    const std::string_view text = value;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), elements);
    if (error != std::errc() || end != text.data() + text.size() || elements < 0)
      throw ConfigError(name, text, "must be a number of elements, 0 or more");
  }
  return ExecSpace().concurrency() == 1 ? std::numeric_limits<Size>::max() : elements;
}

}  // namespace tessera
