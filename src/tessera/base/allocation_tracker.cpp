// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <tessera/base/allocation_tracker.hpp>

namespace tessera {
namespace {

namespace tools = Kokkos::Tools::Experimental;

// Any thread may allocate and free Views.
std::mutex mutex;
std::vector<AllocationScope*> open_scopes;
tools::EventSet earlier;  // callbacks of a tool that was loaded before
bool installed = false;

template <bool is_allocation>
void on_event(Kokkos::Tools::SpaceHandle space, const char* label, const void* pointer,
              std::uint64_t bytes) {
  Kokkos_Profiling_allocateDataFunction pass_on = nullptr;
  {
    const std::lock_guard lock(mutex);
    for (AllocationScope* scope : open_scopes) {
      scope->record(space.name, label, static_cast<Size>(bytes), is_allocation);
    }
    pass_on = is_allocation ? earlier.allocate_data : earlier.deallocate_data;
  }
  // Without the lock, because the tool may allocate.
  if (pass_on != nullptr) pass_on(space, label, pointer, bytes);
}

void install() {
  if (std::exchange(installed, true)) return;
  earlier = tools::get_callbacks();
  tools::set_allocate_data_callback(on_event<true>);
  tools::set_deallocate_data_callback(on_event<false>);
}

// A tool that was loaded later may call these callbacks. They then stay installed.
void uninstall() {
  const tools::EventSet present = tools::get_callbacks();
  if (present.allocate_data != on_event<true> || present.deallocate_data != on_event<false>) return;
  tools::set_allocate_data_callback(earlier.allocate_data);
  tools::set_deallocate_data_callback(earlier.deallocate_data);
  installed = false;
}

void count(AllocationCounts& counts, Size bytes, bool is_allocation) {
  ++(is_allocation ? counts.allocations : counts.deallocations);
  counts.current_bytes += is_allocation ? bytes : -bytes;
  counts.peak_bytes = std::max(counts.peak_bytes, counts.current_bytes);
}

}  // namespace

AllocationScope::AllocationScope(std::string label_prefix)
    : label_prefix_(std::move(label_prefix)) {
  const std::lock_guard lock(mutex);
  install();
  open_scopes.push_back(this);
}

AllocationScope::~AllocationScope() {
  const std::lock_guard lock(mutex);
  std::erase(open_scopes, this);
  if (open_scopes.empty()) uninstall();
}

AllocationCounts AllocationScope::total() const {
  const std::lock_guard lock(mutex);
  return total_;
}

std::map<std::string, AllocationCounts> AllocationScope::by_space() const {
  const std::lock_guard lock(mutex);
  return by_space_;
}

void AllocationScope::reset() {
  const std::lock_guard lock(mutex);
  total_ = {};
  by_space_.clear();
}

void AllocationScope::record(std::string_view space, std::string_view label, Size bytes,
                             bool is_allocation) {
  if (!label.starts_with(label_prefix_)) return;
  count(total_, bytes, is_allocation);
  count(by_space_[std::string(space)], bytes, is_allocation);
}

}  // namespace tessera
