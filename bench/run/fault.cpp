// SPDX-License-Identifier: Apache-2.0
#include "run/fault.hpp"

#include <regex>

#include <tessera/base/error.hpp>

namespace tessera::bench {

Fault parse_fault(const std::string& text) {
  static const std::regex form(
      R"((throw|stall)@(\d{1,9})|slow@(\d{1,9}):(\d{1,6}(?:\.\d{1,6})?)%)");
  std::smatch parts;
  if (!std::regex_match(text, parts, form))
    throw ConfigError("--inject", text, "must be throw@RANK, stall@RANK or slow@RANK:PERCENT%");
  if (parts[3].matched) return {Fault::Kind::slows, std::stoi(parts[3]), std::stod(parts[4]) / 100};
  return {parts[1] == "throw" ? Fault::Kind::throws : Fault::Kind::stalls, std::stoi(parts[2])};
}

}  // namespace tessera::bench
