// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include <tessera/base/allocation_tracker.hpp>
#include <tessera/base/region.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/timer.hpp>
#include <tessera/base/view.hpp>
#include <tessera/trace/region_timer.hpp>

namespace tessera {
namespace {

namespace tools = Kokkos::Tools::Experimental;

struct OpenRegion {
  std::string name;
  double begin = 0;
  double inside = 0;  ///< seconds in inner regions
  Size bytes = 0;     ///< of a call
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
  explicit State(Size most_events) : most_events_(most_events) {}

  void push(const char* name) {
    wait_for_kernels();
    const double now = clock_.seconds();
    open_.push_back({name, now - overhead_});
    overhead_ += clock_.seconds() - now;
  }

  void pop() {
    wait_for_kernels();
    const double now = clock_.seconds();
    if (open_.empty()) return;
    const OpenRegion region = std::move(open_.back());
    open_.pop_back();
    const double seconds = now - overhead_ - region.begin;
    if (!open_.empty()) open_.back().inside += seconds;
    count(region, seconds);
    overhead_ += clock_.seconds() - now;
  }

  void event(std::string_view text) {
    if (text.starts_with(action_event) && std::ssize(trace.memory) < most_events_)
      trace.memory.push_back({clock_.seconds() - overhead_,
                              number_of<Size>(text.substr(action_event.size())).value_or(0),
                              allocations_.current_bytes()});
    if (text.starts_with(tensor_event)) tensor_ = text.substr(tensor_event.size());
    if (text.starts_with(bytes_event) && !open_.empty())
      open_.back().bytes = number_of<Size>(text.substr(bytes_event.size())).value_or(0);
  }

  RankTrace trace;

 private:
  void count(const OpenRegion& region, double seconds) {
    const bool is_step = region.name == "tessera::step";
    if (is_step) ++steps_;
    if (!is_step && !is_inside("tessera::step")) return;
    const bool is_full =
        static_cast<Size>(trace.calls.size() + trace.regions.size()) >= most_events_;
    if (is_full) ++trace.left_out;
    if (std::optional<TracedCall> call = call_of(region.name)) {
      if (is_full) return;
      call->seconds = seconds;
      call->begin = region.begin;
      call->in_pass = is_inside(pass_prefix);
      call->tensor = tensor_;
      call->bytes = region.bytes;
      call->step = steps_;
      trace.calls.push_back(std::move(*call));
      return;
    }
    if (!is_full) trace.regions.push_back({region.name, region.begin, seconds});
    const double own = seconds - region.inside;
    if (is_step) {
      trace.step += seconds;
    } else if (region.name == "tessera::update") {
      trace.optimizer += own;
    } else if (!region.name.starts_with(pass_prefix)) {
      trace.compute += own;
      // Regions of Kokkos Kernels inside it count; it contains no calls. Layers whose threads share
      // items have one around their products.
      if (region.name == products_region && !is_inside(products_region)) trace.products += seconds;
    }
  }

  /// Waits for the stream of the kernels. Kokkos::fence() would also wait for those of NCCL, so
  /// that no call could hide behind kernels.
  static void wait_for_kernels() { ExecSpace().fence("tessera::trace"); }

  bool is_inside(std::string_view prefix) const {
    return std::any_of(open_.begin(), open_.end(),
                       [&](const OpenRegion& r) { return r.name.starts_with(prefix); });
  }

  Size most_events_;
  AllocationScope allocations_{"tessera::", MemSpace::name()};
  Timer clock_;
  double overhead_ = 0;  ///< seconds spent in the instrumentation
  std::vector<OpenRegion> open_;
  std::string tensor_;  ///< of the present action
  Size steps_ = 0;      ///< that have ended
};

std::optional<State> state;  // callbacks are plain functions
tools::EventSet earlier;     // those of a tool that was loaded before

void on_push(const char* name) {
  if (earlier.push_region != nullptr) earlier.push_region(name);
  state->push(name);
}
void on_pop() {
  state->pop();
  if (earlier.pop_region != nullptr) earlier.pop_region();
}
void on_event(const char* text) {
  if (earlier.profile_event != nullptr) earlier.profile_event(text);
  state->event(text);
}

}  // namespace

void RankTrace::add_memory(Size measured_before, const nlohmann::json& planned) {
  planned_bytes = planned.at("memory").at("total");
  for (TracedMemory& at : memory) {
    at.measured += measured_before;
    at.in_use = planned.at("actions").at(at.action).at("in_use");
  }
}

RegionTimer::RegionTimer(Size most_events) {
  earlier = tools::get_callbacks();
  state.emplace(most_events);
  tools::set_push_region_callback(on_push);
  tools::set_pop_region_callback(on_pop);
  tools::set_profile_event_callback(on_event);
}

RegionTimer::~RegionTimer() {
  tools::set_push_region_callback(earlier.push_region);
  tools::set_pop_region_callback(earlier.pop_region);
  tools::set_profile_event_callback(earlier.profile_event);
  state.reset();
}

const RankTrace& RegionTimer::trace() const { return state->trace; }

}  // namespace tessera
