// SPDX-License-Identifier: Apache-2.0
#include "measure/slow_rank.hpp"

#include <optional>
#include <string_view>

#include <tessera/base/timer.hpp>

#include "measure/region_hooks.hpp"

namespace tessera::bench {
namespace {

// Callbacks are plain functions.
double share_of_step = 0;
Timer clock_of_rank;
double step_began = 0, call_began = 0, communicated = 0;
int depth = 0, call_depth = 0;
std::optional<RegionHooks> slow_hooks;

void slow_push(const char* name) {
  ++depth;
  const std::string_view region(name);
  if (region == "tessera::step") {
    depth = 1;
    call_depth = 0;
    communicated = 0;
    step_began = clock_of_rank.seconds();
  } else if (call_depth == 0 && region.ends_with(')')) {  // "tessera::all_reduce(data)"
    call_depth = depth;
    call_began = clock_of_rank.seconds();
  }
}

void slow_pop() {
  const double now = clock_of_rank.seconds();
  if (depth == call_depth) {
    communicated += now - call_began;
    call_depth = 0;
  }
  if (--depth > 0) return;
  Kokkos::fence();
  const double end = clock_of_rank.seconds();
  const double until = end + share_of_step * (end - step_began - communicated);
  while (clock_of_rank.seconds() < until) {
  }
}

}  // namespace

SlowRank::SlowRank(double share) {
  share_of_step = share;
  slow_hooks.emplace(slow_push, slow_pop);
}

SlowRank::~SlowRank() { slow_hooks.reset(); }

}  // namespace tessera::bench
