// SPDX-License-Identifier: Apache-2.0
#include "measure/instrument.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <Kokkos_Core.hpp>

#include <tessera/base/timer.hpp>

namespace tessera::bench {
namespace {

namespace tools = Kokkos::Tools::Experimental;

struct OpenRegion {
  std::string name;
  double begin = 0;
  double inside = 0;         ///< seconds of the regions inside
  bool holds_calls = false;  ///< then it is no call itself, whatever its name
  std::vector<LedgerRow> ledger;
};

std::optional<Operation> operation_of(std::string_view region) {
  for (std::size_t i = 0; i < num_operations; ++i)
    if (region == "tessera::" + std::string(operation_names[i])) return static_cast<Operation>(i);
  return std::nullopt;
}

class State {
 public:
  explicit State(const Ledger& ledger) : ledger_(ledger) {}

  void push(const char* name) {
    Kokkos::fence();
    const double now = clock_.seconds();
    OpenRegion region{name, now - looked_, 0, false, {}};
    if (operation_of(region.name)) region.ledger = ledger_.rows();
    open_.push_back(std::move(region));
    looked_ += clock_.seconds() - now;
  }

  void pop() {
    Kokkos::fence();
    const double now = clock_.seconds();
    if (open_.empty()) return;
    const OpenRegion region = std::move(open_.back());
    open_.pop_back();
    const double seconds = now - looked_ - region.begin;
    if (!open_.empty()) {
      open_.back().inside += seconds;
      open_.back().holds_calls |= region.holds_calls || operation_of(region.name).has_value();
    }
    count(region, seconds);
    looked_ += clock_.seconds() - now;
  }

  RankTrace trace;

 private:
  void count(const OpenRegion& region, double seconds) {
    const double own = seconds - region.inside;
    const auto operation = operation_of(region.name);
    const bool is_step = region.name == "tessera::step";
    if (operation && !region.holds_calls) {
      if (is_in_step())
        trace.calls.push_back({axis_of(*operation, region), *operation, seconds, region.begin});
      return;
    }
    if (is_step || is_in_step()) trace.regions.push_back({region.name, region.begin, seconds});
    if (is_step) {
      trace.step += seconds;
    } else if (region.name == "tessera::update") {
      trace.optimizer += own;
    } else if (is_in_step()) {
      trace.compute += own;
    }
  }

  bool is_in_step() const {
    return std::any_of(open_.begin(), open_.end(),
                       [](const OpenRegion& r) { return r.name == "tessera::step"; });
  }

  /// Where the ledger has grown; the end of a call that was started before goes where that went.
  std::string axis_of(Operation operation, const OpenRegion& region) {
    std::string& latest = latest_[static_cast<std::size_t>(operation)];
    for (const LedgerRow& row : ledger_.rows()) {
      if (row.operation == operation &&
          std::find(region.ledger.begin(), region.ledger.end(), row) == region.ledger.end())
        latest = row.axis;
    }
    return latest;
  }

  const Ledger& ledger_;
  Timer clock_;
  double looked_ = 0;  ///< seconds spent in here
  std::vector<OpenRegion> open_;
  std::array<std::string, num_operations> latest_;
};

std::optional<State> state;  // callbacks are plain functions

void on_push(const char* name) { state->push(name); }
void on_pop() { state->pop(); }

tools::EventSet earlier;

}  // namespace

RegionTimer::RegionTimer(const Ledger& ledger) {
  state.emplace(ledger);
  earlier = tools::get_callbacks();
  tools::set_push_region_callback(on_push);
  tools::set_pop_region_callback(on_pop);
}

RegionTimer::~RegionTimer() {
  tools::set_push_region_callback(earlier.push_region);
  tools::set_pop_region_callback(earlier.pop_region);
  state.reset();
}

const RankTrace& RegionTimer::trace() const { return state->trace; }

}  // namespace tessera::bench
