// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tessera/base/types.hpp>

namespace tessera {

/// Marks the calling thread during the life of this object: it computes its share of some items
/// alone (share_items()). Kernels then run as loops on this thread.
class ThreadShare {
 public:
  explicit ThreadShare(Size number) { current_ = number; }
  ~ThreadShare() { current_ = none; }
  ThreadShare(const ThreadShare&) = delete;
  ThreadShare& operator=(const ThreadShare&) = delete;

  static bool is_open() { return current_ != none; }
  /// True for all shares but one, which speaks to tools for all of them.
  static bool is_silent() { return current_ > 0; }

 private:
  static constexpr Size none = -1;
  static inline thread_local Size current_ = none;
};

}  // namespace tessera
