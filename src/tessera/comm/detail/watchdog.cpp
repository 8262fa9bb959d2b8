// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <tessera/comm/detail/monitor.hpp>

namespace tessera {

Watchdog::Watchdog(MPI_Comm world, double timeout_seconds, const Site& site)
    : monitor_(std::make_unique<Monitor>(world, timeout_seconds, board_, site)) {}

Watchdog::~Watchdog() = default;

std::shared_ptr<WatchedGroup> Watchdog::watch(std::uint64_t id, std::string axis,
                                              std::vector<int> world_ranks) {
  auto group = std::make_shared<WatchedGroup>();
  group->id = id;
  group->axis = std::move(axis);
  group->world_ranks = std::move(world_ranks);
  monitor_->groups().add(group);
  return group;
}

}  // namespace tessera
