// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include <tessera/comm/detail/watchdog.hpp>

namespace tessera {

/// Groups by id, for two threads. Groups that nobody holds any more are forgotten.
class WatchedGroups {
 public:
  void add(const std::shared_ptr<WatchedGroup>& group) {
    const std::lock_guard lock(mutex_);
    std::erase_if(groups_, [](const auto& entry) { return entry.second.expired(); });
    groups_[group->id] = group;
  }
  /// Null if it is gone.
  std::shared_ptr<WatchedGroup> find(std::uint64_t id) const {
    const std::lock_guard lock(mutex_);
    const auto found = groups_.find(id);
    return found == groups_.end() ? nullptr : found->second.lock();
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<WatchedGroup>> groups_;
};

}  // namespace tessera
