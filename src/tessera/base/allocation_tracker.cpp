// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <vector>

#include <Kokkos_Core.hpp>

#include <tessera/base/allocation_tracker.hpp>

namespace tessera {
namespace {

namespace tools = Kokkos::Tools::Experimental;

using AllocateCallback = void(Kokkos::Tools::SpaceHandle, const char* label, const void* pointer,
                              std::uint64_t bytes);
AllocateCallback on_allocate;
AllocateCallback on_deallocate;

// The open scopes, and the callbacks of a tool that was there before us.
class Hooks {
 public:
  static Hooks& instance() {
    static Hooks hooks;
    return hooks;
  }

  void add(AllocationScope* scope) {
    const std::lock_guard lock(mutex_);
    if (scopes_.empty()) install();
    scopes_.push_back(scope);
  }

  void remove(AllocationScope* scope) {
    const std::lock_guard lock(mutex_);
    scopes_.erase(std::find(scopes_.begin(), scopes_.end(), scope));
    if (scopes_.empty()) uninstall();
  }

  void allocated(Kokkos::Tools::SpaceHandle space, const char* label, const void* pointer,
                 std::uint64_t bytes) {
    AllocateCallback* earlier = record(space, label, bytes, true).allocate;
    if (earlier != nullptr) earlier(space, label, pointer, bytes);
  }

  void deallocated(Kokkos::Tools::SpaceHandle space, const char* label, const void* pointer,
                   std::uint64_t bytes) {
    AllocateCallback* earlier = record(space, label, bytes, false).deallocate;
    if (earlier != nullptr) earlier(space, label, pointer, bytes);
  }

 private:
  // Of the earlier tool. Called without the lock: it may allocate itself.
  struct Earlier {
    AllocateCallback* allocate = nullptr;
    AllocateCallback* deallocate = nullptr;
  };

  Earlier record(const Kokkos::Tools::SpaceHandle& space, const char* label, std::uint64_t bytes,
                 bool allocated) {
    const std::lock_guard lock(mutex_);
    for (AllocationScope* scope : scopes_) {
      scope->record(space.name, label, static_cast<Size>(bytes), allocated);
    }
    return earlier_;
  }

  void install() {
    if (installed_) return;
    const tools::EventSet present = tools::get_callbacks();
    earlier_ = {present.allocate_data, present.deallocate_data};
    tools::set_allocate_data_callback(on_allocate);
    tools::set_deallocate_data_callback(on_deallocate);
    installed_ = true;
  }

  // Somebody who came after us may call our callbacks: those then stay in place and pass on.
  void uninstall() {
    const tools::EventSet present = tools::get_callbacks();
    if (present.allocate_data != on_allocate || present.deallocate_data != on_deallocate) return;
    tools::set_allocate_data_callback(earlier_.allocate);
    tools::set_deallocate_data_callback(earlier_.deallocate);
    earlier_ = {};
    installed_ = false;
  }

  std::mutex mutex_;
  std::vector<AllocationScope*> scopes_;
  Earlier earlier_;
  bool installed_ = false;
};

void on_allocate(Kokkos::Tools::SpaceHandle space, const char* label, const void* pointer,
                 std::uint64_t bytes) {
  Hooks::instance().allocated(space, label, pointer, bytes);
}

void on_deallocate(Kokkos::Tools::SpaceHandle space, const char* label, const void* pointer,
                   std::uint64_t bytes) {
  Hooks::instance().deallocated(space, label, pointer, bytes);
}

void count(AllocationCounts& counts, Size bytes, bool allocated) {
  ++(allocated ? counts.allocations : counts.deallocations);
  counts.current_bytes += allocated ? bytes : -bytes;
  counts.peak_bytes = std::max(counts.peak_bytes, counts.current_bytes);
}

}  // namespace

AllocationScope::AllocationScope(std::string label_prefix)
    : label_prefix_(std::move(label_prefix)) {
  Hooks::instance().add(this);
}

AllocationScope::~AllocationScope() { Hooks::instance().remove(this); }

AllocationCounts AllocationScope::total() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

std::map<std::string, AllocationCounts> AllocationScope::by_space() const {
  const std::lock_guard lock(mutex_);
  return by_space_;
}

void AllocationScope::reset() {
  const std::lock_guard lock(mutex_);
  total_ = {};
  by_space_.clear();
}

void AllocationScope::record(std::string_view space, std::string_view label, Size bytes,
                             bool allocated) {
  if (!label.starts_with(label_prefix_)) return;
  const std::lock_guard lock(mutex_);
  count(total_, bytes, allocated);
  count(by_space_[std::string(space)], bytes, allocated);
}

}  // namespace tessera
