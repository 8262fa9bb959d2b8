// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <utility>

namespace tessera::bench {

/// Held by the process that runs a case. The system releases it when the process ends, however it
/// ends, so a case that a killed launch has left can be run again at once.
class CaseLock {
 public:
  /// None if another process or another CaseLock holds it. Where the file system has no locks,
  /// everybody gets one. Throws Error (usage) if the file cannot be created.
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
