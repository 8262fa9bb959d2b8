// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/base/clock_text.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

std::string clock_text(double seconds) {
  const auto whole = static_cast<Size>(seconds + 0.5);
  constexpr Size minute = 60, hour = 3600;
  const Size hours = whole / hour, minutes = whole % hour / minute, rest = whole % minute;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, rest)
                   : fmt::format("{}:{:02}", minutes, rest);
}

}  // namespace tessera
