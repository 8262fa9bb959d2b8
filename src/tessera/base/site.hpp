// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <source_location>
#include <string>
#include <string_view>

namespace tessera {

/// The source line of a call. Errors and the watchdog name it.
using Site = std::source_location;

constexpr std::string_view basename_of(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

/// "trainer.cpp:42".
inline std::string to_string(const Site& site) {
  return std::string(basename_of(site.file_name())) + ":" + std::to_string(site.line());
}

}  // namespace tessera
