// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <utility>

namespace tessera::bench {

/// The lock (flock) of a case, held by the process that runs it. The system releases it when the
/// process ends, so that a case of a killed launch can run again at once.
class CaseLock {
 public:
  /// Returns none if another process or another CaseLock holds the lock. On a file system without
  /// locks, it always succeeds. Throws Error (usage) if the file cannot be created.
  static std::optional<CaseLock> take(const std::filesystem::path& file);
  ~CaseLock();
  CaseLock(CaseLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  CaseLock& operator=(CaseLock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }

 private:
  explicit CaseLock(int file) : file_(file) {}
  int file_ = -1;
};

enum class LockState {
  free,
  held,
  unknown,  ///< the file system has no locks
};
LockState lock_state(const std::filesystem::path& file);

}  // namespace tessera::bench
