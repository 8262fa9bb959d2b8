// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <tessera/base/text.hpp>

namespace tessera::bench {

/// Checks that an option's value is a whole number of at least 1, and at most `most`.
inline CLI::Validator at_least_one(Size most = std::numeric_limits<Size>::max()) {
  return CLI::Validator(
      [most](const std::string& text) -> std::string {
        const auto number = number_of<Size>(text);
        if (number && *number > most) return fmt::format("{} must be at most {}", text, most);
        return number && *number >= 1 ? "" : text + " must be a whole number of at least 1";
      },
      "", "whole number");
}

}  // namespace tessera::bench
