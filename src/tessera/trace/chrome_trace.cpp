// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <tessera/trace/chrome_trace.hpp>

namespace tessera {
namespace {

nlohmann::json event(std::string name, const char* category, std::size_t rank, double begin,
                     double seconds) {
  return {{"name", std::move(name)}, {"cat", category}, {"ph", "X"},  {"ts", 1e6 * begin},
          {"dur", 1e6 * seconds},    {"pid", 0},        {"tid", rank}};
}

/// Returns the name without the prefix of all regions.
std::string short_name(const std::string& region) {
  constexpr std::string_view prefix = "tessera::";
  return region.starts_with(prefix) ? region.substr(prefix.size()) : region;
}

}  // namespace

nlohmann::json chrome_trace(const std::vector<RankTrace>& ranks) {
  nlohmann::json events = nlohmann::json::array();
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 0},
                      {"tid", r},
                      {"args", {{"name", fmt::format("rank {}", r)}}}});
    for (const TracedRegion& region : ranks[r].regions)
      events.push_back(event(short_name(region.name), "region", r, region.begin, region.seconds));
    for (const TracedCall& call : ranks[r].calls) {
      const double waited = call.waiting;
      if (waited > 0) events.push_back(event("idle", "idle", r, call.begin, waited));
      events.push_back(event(std::string(name_of(call.operation)), "collective", r,
                             call.begin + waited, call.seconds - waited));
      events.back()["args"] = {{"axis", call.axis}};
    }
  }
  return {{"displayTimeUnit", "ms"}, {"traceEvents", events}};
}

}  // namespace tessera
