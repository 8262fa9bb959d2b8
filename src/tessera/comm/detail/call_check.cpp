// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/comm/detail/call_check.hpp>
#include <tessera/process/mpi_error.hpp>
#include <tessera/process/share_text.hpp>

namespace tessera {
namespace {

/// Returns what must be the same on every rank: "all_reduce (sum) of 12 float32 at trainer.cpp:42".
/// The parts of an all_to_all may differ.
std::string text_of(const Call& call) {
  std::string text(name_of(call.operation));
  if (is_reduction(call.operation)) {
    text += fmt::format(" ({})", name_of(call.op));
  }
  if (call.operation == Operation::broadcast) text += fmt::format(" from rank {}", call.peer);
  if (call.operation == Operation::all_to_all) {
    text += fmt::format(" of {}", name_of(call.in.type));
  } else if (call.operation < Operation::barrier) {
    text += fmt::format(" of {} {}", call.full().count, name_of(call.full().type));
    if (call.in_place) text += " in place";
    if (!call.counts.empty()) text += fmt::format(" in shares {}", fmt::join(call.counts, ","));
  }
  return text + " at " + to_string(call.site);
}

}  // namespace

void agree_on_call(MPI_Comm control, const Call& call, const std::optional<std::string>& problem,
                   std::string_view axis) {
  const std::string text = problem ? text_of(call) + ": " + *problem : text_of(call);
  const auto hash = static_cast<std::int64_t>(std::hash<std::string>{}(text) >> 1);
  std::array<std::int64_t, 3> largest{hash, -hash, problem ? 1 : 0};
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, largest.data(), static_cast<int>(largest.size()),
                          MPI_INT64_T, MPI_MAX, control),
            "MPI_Allreduce", call.site);
  const bool any_problem = largest[2] == 1;
  if (largest[0] == -largest[1] && !any_problem) return;

  std::map<int, std::string> texts;
  for (std::string& said : gather_texts(control, text, call.site)) {
    texts.emplace(static_cast<int>(texts.size()), std::move(said));
  }
  std::vector<std::string> parts;
  for (const auto& [ranks, said] : ranks_by_text(texts)) parts.push_back(ranks + ": " + said);
  throw Error(ExitCode::communication, "{} over axis {}: {}",
              any_problem ? "invalid call" : "mismatched calls", axis, join(parts, "; "));
}

}  // namespace tessera
