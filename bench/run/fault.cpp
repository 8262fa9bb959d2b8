// SPDX-License-Identifier: Apache-2.0
#include "run/fault.hpp"

#include <charconv>
#include <chrono>
#include <stdexcept>
#include <thread>

#include <tessera/base/error.hpp>

namespace tessera::bench {

Fault parse_fault(const std::string& text) {
  Fault fault;
  const std::size_t at = text.find('@');
  const std::string kind = text.substr(0, at);
  const std::string rank = at == std::string::npos ? "" : text.substr(at + 1);
  const auto [end, error] = std::from_chars(rank.data(), rank.data() + rank.size(), fault.rank);
  const bool has_rank = error == std::errc() && end == rank.data() + rank.size() && fault.rank >= 0;
  if (!has_rank || (kind != "throw" && kind != "stall"))
    throw ConfigError("--inject", text, "must be throw@RANK or stall@RANK");
  fault.kind = kind == "throw" ? Fault::Kind::throws : Fault::Kind::stalls;
  return fault;
}

void inject(const Fault& fault, int rank) {
  if (rank != fault.rank) return;
  if (fault.kind == Fault::Kind::throws) throw std::runtime_error("thrown by --inject");
  std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace tessera::bench
