// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/mpi_error.hpp>
#include <tessera/base/share_text.hpp>
#include <tessera/base/text.hpp>
#include <tessera/comm/detail/call_check.hpp>

namespace tessera {
namespace {

/// Parts of an all_to_all differ between ranks; those of other calls are the same on all.
bool has_common_count(const Call& call) { return call.operation != Operation::all_to_all; }

std::int64_t hash_of(std::span<const Size> counts) {
  std::uint64_t hash = counts.size();
  for (const Size count : counts) {
    hash = (hash ^ static_cast<std::uint64_t>(count)) * 0x9E3779B97F4A7C15ULL;
  }
  return static_cast<std::int64_t>(hash >> 2);
}

/// What must be equal on all ranks, in numbers.
std::array<std::int64_t, 9> fingerprint(const Call& call, bool has_problem) {
  const bool common = has_common_count(call);
  const std::string_view file = basename_of(call.site.file_name());
  return {static_cast<std::int64_t>(call.operation),
          static_cast<std::int64_t>(call.op),
          static_cast<std::int64_t>(call.in.type),
          common ? call.full().count : 0,
          common ? hash_of(call.counts) : 0,
          call.peer,
          call.in_place ? 1 : 0,
          static_cast<std::int64_t>(std::hash<std::string_view>{}(file) >> 2) + call.site.line(),
          has_problem ? 1 : 0};
}

/// "all_reduce (sum) of 12 float32 at trainer.cpp:42".
std::string text_of(const Call& call) {
  std::string text(name_of(call.operation));
  if (call.operation == Operation::all_reduce || call.operation == Operation::reduce_scatter) {
    text += fmt::format(" ({})", name_of(call.op));
  }
  if (call.operation == Operation::broadcast) text += fmt::format(" from rank {}", call.peer);
  if (call.in.count > 0 || call.out.count > 0) {
    text += fmt::format(" of {} {}", call.full().count, name_of(call.full().type));
  }
  if (call.in_place) text += " in place";
  if (!call.counts.empty()) text += fmt::format(" in shares {}", fmt::join(call.counts, ","));
  return text + " at " + to_string(call.site);
}

/// Who says what, by the lowest rank of each text.
std::string grouped(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string_view, std::vector<int>>> groups;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& group) { return group.first == texts[i]; });
    if (found == groups.end()) found = groups.insert(groups.end(), {texts[i], {}});
    found->second.push_back(static_cast<int>(i));
  }
  std::string line;
  for (const auto& [text, ranks] : groups) {
    line += fmt::format("{}{}: {}", line.empty() ? "" : "; ", rank_list(ranks), text);
  }
  return line;
}

/// Throws on all ranks unless all fingerprints are equal and nobody has a problem.
void agree(MPI_Comm control, const Call& call, const std::optional<std::string>& problem,
           std::string_view axis) {
  const auto mine = fingerprint(call, problem.has_value());
  std::array<std::int64_t, 2 * mine.size()> extremes{};
  for (std::size_t i = 0; i < mine.size(); ++i) {
    extremes[i] = mine[i];
    extremes[mine.size() + i] = -mine[i];
  }
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, extremes.data(), static_cast<int>(extremes.size()),
                          MPI_INT64_T, MPI_MAX, control),
            "MPI_Allreduce", call.site);
  bool equal = true;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    equal = equal && extremes[i] == -extremes[mine.size() + i];
  }
  const bool any_problem = extremes[mine.size() - 1] == 1;
  if (equal && !any_problem) return;

  const std::string text = problem ? text_of(call) + ": " + *problem : text_of(call);
  const std::vector<std::string> texts = gather_texts(control, text, call.site);
  throw Error(ExitCode::communication,
              fmt::format("{} over axis {}: {}", any_problem ? "invalid call" : "mismatched calls",
                          axis, grouped(texts)));
}

/// What one rank sends must be what the other expects.
std::optional<std::string> exchange_problem(MPI_Comm control, const Call& call) {
  std::vector<Size> coming(call.receive_counts.size());
  check_mpi(
      MPI_Alltoall(call.counts.data(), 1, MPI_INT64_T, coming.data(), 1, MPI_INT64_T, control),
      "MPI_Alltoall", call.site);
  for (std::size_t i = 0; i < coming.size(); ++i) {
    if (coming[i] == call.receive_counts[i]) continue;
    return fmt::format("rank {} sends {} elements, not the expected {}", i, coming[i],
                       call.receive_counts[i]);
  }
  return {};
}

}  // namespace

void agree_on_call(MPI_Comm control, const Call& call, const std::optional<std::string>& problem,
                   std::string_view axis) {
  agree(control, call, problem, axis);
  if (call.operation == Operation::all_to_all) {
    agree(control, call, exchange_problem(control, call), axis);
  }
}

}  // namespace tessera
