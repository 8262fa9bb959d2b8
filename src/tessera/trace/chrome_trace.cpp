// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <tessera/trace/chrome_trace.hpp>

namespace tessera {
namespace {

/// A slice of a rank's row. Times are in eighths of a microsecond: these are exact as binary and
/// decimal fractions and as whole nanoseconds, so slices nest in every viewer.
struct Slice {
  std::string name;
  const char* category;
  Size begin, end;
  nlohmann::json arguments{};
};

Slice slice(std::string name, const char* category, double begin, double end,
            nlohmann::json arguments = {}) {
  const auto eighths = [](double seconds) {
    return static_cast<Size>(std::llround(8e6 * seconds));
  };
  return {std::move(name), category, eighths(begin), eighths(end), std::move(arguments)};
}

/// Returns the name without the prefix of all regions.
std::string short_name(const std::string& region) {
  constexpr std::string_view prefix = "tessera::";
  return region.starts_with(prefix) ? region.substr(prefix.size()) : region;
}

nlohmann::json arguments_of(const TracedCall& call, Size first_step) {
  nlohmann::json arguments{{"axis", call.axis}, {"step", first_step + call.step}};
  if (call.bytes > 0) arguments["bytes"] = call.bytes;
  if (!call.tensor.empty()) arguments["tensor"] = call.tensor;
  return arguments;
}

/// Returns the slices of a rank, each before those inside it.
std::vector<Slice> slices_of(const RankTrace& rank, Size first_step) {
  std::vector<Slice> slices;
  for (auto r = rank.regions.rbegin(); r != rank.regions.rend(); ++r)  // outer regions end later
    slices.push_back(slice(short_name(r->name), "region", r->begin, r->begin + r->seconds));
  for (const TracedCall& call : rank.calls) {
    const double arrival = call.begin + call.waiting;
    if (call.waiting > 0) slices.push_back(slice("idle", "idle", call.begin, arrival));
    slices.push_back(slice(std::string(name_of(call.operation)), "collective", arrival,
                           call.begin + call.seconds, arguments_of(call, first_step)));
  }
  std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  return slices;
}

}  // namespace

nlohmann::json chrome_trace(const std::vector<RankTrace>& ranks, Size first_step, Size first_rank) {
  nlohmann::json events = nlohmann::json::array();
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Size rank = first_rank + static_cast<Size>(r);
    const nlohmann::json row{{"pid", 1}, {"tid", rank + 1}};  // 0 is a special thread in Perfetto
    const auto add = [&](nlohmann::json event) {
      event.update(row);
      events.push_back(std::move(event));
    };
    add({{"name", "thread_name"}, {"ph", "M"}, {"args", {{"name", fmt::format("rank {}", rank)}}}});
    for (Slice& one : slices_of(ranks[r], first_step)) {
      nlohmann::json event{{"name", std::move(one.name)},
                           {"cat", one.category},
                           {"ph", "X"},
                           {"ts", static_cast<double>(one.begin) / 8},
                           {"dur", static_cast<double>(one.end - one.begin) / 8}};
      if (!one.arguments.is_null()) event["args"] = std::move(one.arguments);
      add(std::move(event));
    }
    for (const TracedMemory& at : ranks[r].memory)
      add({{"name", fmt::format("memory of rank {}", rank)},
           {"ph", "C"},
           {"ts", 1e6 * at.begin},
           {"args",
            {{"planned", ranks[r].planned_bytes},
             {"in use", at.in_use},
             {"measured", at.measured}}}});
  }
  return {{"displayTimeUnit", "ms"}, {"traceEvents", events}};
}

}  // namespace tessera
