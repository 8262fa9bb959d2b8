// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera {

/// Marks the calling thread during the life of this object: it computes its share of some items
/// alone (share_items()). Kernels are then loops on this thread, and tools hear nothing: Kokkos
/// would wait for the kernel that the thread belongs to.
class ThreadShare {
 public:
  ThreadShare() { is_open_ = true; }
  ~ThreadShare() { is_open_ = false; }
  ThreadShare(const ThreadShare&) = delete;
  ThreadShare& operator=(const ThreadShare&) = delete;

  static bool is_open() { return is_open_; }

 private:
  static inline thread_local bool is_open_ = false;
};

}  // namespace tessera
