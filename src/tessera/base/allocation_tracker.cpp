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

}  // namespace

AllocationScope::AllocationScope(std::string label_prefix, std::string space)
    : label_prefix_(std::move(label_prefix)), space_(std::move(space)) {
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

void AllocationScope::reset() {
  const std::lock_guard lock(mutex);
  total_ = {};
}

void AllocationScope::record(std::string_view space, std::string_view label, Size bytes,
                             bool is_allocation) {
  if (!label.starts_with(label_prefix_) || !(space_.empty() || space == space_)) return;
  ++(is_allocation ? total_.allocations : total_.deallocations);
  total_.current_bytes += is_allocation ? bytes : -bytes;
  total_.peak_bytes = std::max(total_.peak_bytes, total_.current_bytes);
}

}  // namespace tessera
