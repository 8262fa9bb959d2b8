// SPDX-License-Identifier: Apache-2.0
#include "run/fault.hpp"

#include <charconv>
#include <string_view>

#include <tessera/base/error.hpp>

namespace tessera::bench {
namespace {

/// Takes a number from 0 to a million from the front of the text.
template <class T>
bool take_number(std::string_view& text, T& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc{} || !(number >= 0 && number <= 1000000)) return false;
  text.remove_prefix(end - text.data());
  return true;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

Fault parse_fault(const std::string& text) {
  Fault fault;
  std::string_view rest = text;
  if (take(rest, "stall@"))
    fault.kind = Fault::Kind::stalls;
  else if (take(rest, "slow@"))
    fault.kind = Fault::Kind::slows;
  else if (!take(rest, "throw@"))
    rest = "?";
  bool good = take_number(rest, fault.rank);
  if (good && fault.kind == Fault::Kind::slows)
    good = take(rest, ":") && take_number(rest, fault.share) && take(rest, "%");
  if (!good || !rest.empty())
    throw ConfigError("--inject", text, "must be throw@RANK, stall@RANK or slow@RANK:PERCENT%");
  fault.share /= 100;
  return fault;
}

}  // namespace tessera::bench
