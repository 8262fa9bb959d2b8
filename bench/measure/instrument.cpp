// SPDX-License-Identifier: Apache-2.0
#include "measure/instrument.hpp"

#include <algorithm>
#include <optional>

#include <tessera/base/timer.hpp>

namespace tessera::bench {
namespace {

struct OpenRegion {
  std::string name;
  double begin = 0;
  double inside = 0;  ///< seconds in inner regions
};

/// "tessera::all_reduce(data)" is a call over the axis data. Regions of the engine have no axis.
std::optional<TracedCall> call_of(std::string_view region) {
  const std::size_t open = region.find('(');
  if (open == std::string_view::npos || !region.ends_with(')')) return std::nullopt;
  for (std::size_t i = 0; i < num_operations; ++i)
    if (region.substr(0, open) == "tessera::" + std::string(names_of<Operation>[i]))
      return TracedCall{std::string(region.substr(open + 1, region.size() - open - 2)),
                        static_cast<Operation>(i)};
  return std::nullopt;
}

class State {
 public:
  void push(const char* name) {
    Kokkos::fence();
    const double now = clock_.seconds();
    open_.push_back({name, now - overhead_});
    overhead_ += clock_.seconds() - now;
  }

  void pop() {
    Kokkos::fence();
    const double now = clock_.seconds();
    if (open_.empty()) return;
    const OpenRegion region = std::move(open_.back());
    open_.pop_back();
    const double seconds = now - overhead_ - region.begin;
    if (!open_.empty()) open_.back().inside += seconds;
    count(region, seconds);
    overhead_ += clock_.seconds() - now;
  }

  RankTrace trace;

 private:
  void count(const OpenRegion& region, double seconds) {
    const bool is_step = region.name == "tessera::step";
    if (!is_step && !is_inside("tessera::step")) return;
    if (std::optional<TracedCall> call = call_of(region.name)) {
      call->seconds = seconds;
      call->begin = region.begin;
      call->in_pass = is_inside(pass_prefix);
      trace.calls.push_back(std::move(*call));
      return;
    }
    trace.regions.push_back({region.name, region.begin, seconds});
    const double own = seconds - region.inside;
    if (is_step) {
      trace.step += seconds;
    } else if (region.name == "tessera::update") {
      trace.optimizer += own;
    } else if (!region.name.starts_with(pass_prefix)) {
      trace.compute += own;
      // Regions of Kokkos Kernels inside it count; it contains no calls.
      if (region.name == "tessera::gemm") trace.products += seconds;
    }
  }

  bool is_inside(std::string_view prefix) const {
    return std::any_of(open_.begin(), open_.end(),
                       [&](const OpenRegion& r) { return r.name.starts_with(prefix); });
  }

  Timer clock_;
  double overhead_ = 0;  ///< seconds spent in the instrumentation
  std::vector<OpenRegion> open_;
};

std::optional<State> state;  // callbacks are plain functions

void on_push(const char* name) { state->push(name); }
void on_pop() { state->pop(); }

}  // namespace

RegionTimer::RegionTimer() : earlier_(Kokkos::Tools::Experimental::get_callbacks()) {
  state.emplace();
  Kokkos::Tools::Experimental::set_push_region_callback(on_push);
  Kokkos::Tools::Experimental::set_pop_region_callback(on_pop);
}

RegionTimer::~RegionTimer() {
  Kokkos::Tools::Experimental::set_push_region_callback(earlier_.push_region);
  Kokkos::Tools::Experimental::set_pop_region_callback(earlier_.pop_region);
  state.reset();
}

const RankTrace& RegionTimer::trace() const { return state->trace; }

}  // namespace tessera::bench
