// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <tessera/process/launch.hpp>

namespace tessera {

/// Returns whether threads may be bound to cores: there are several, as many as this rank has
/// cores, no other rank of the node may run on one of these cores, and the user has set no variable
/// that binds threads. `cores[i]` holds the cores of the node's rank i.
bool should_bind_threads(const Environment& environment, int local_rank,
                         std::span<const std::vector<int>> cores, int threads);

/// Binds each thread of OpenMP, the calling one included, to one core of this process, and frees
/// them in its destructor. Does nothing without OpenMP, or if there is one thread.
///
/// A step has hundreds of barriers. If another process is busy on a core, threads that are not
/// bound crowd on the other cores and spin there, while the thread for which they wait has none.
class ThreadBinding {
 public:
  ThreadBinding();
  ~ThreadBinding();
  ThreadBinding(const ThreadBinding&) = delete;
  ThreadBinding& operator=(const ThreadBinding&) = delete;

 private:
  std::vector<int> processors_;  ///< where all threads may run before and after
  int threads_ = 1;
};

}  // namespace tessera
