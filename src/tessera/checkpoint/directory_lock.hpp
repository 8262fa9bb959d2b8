// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace tessera {

/// While one lives, no other process gets one for the same directory of checkpoints: its file
/// "lock" names host and process. Works without locks of the file system. A lock whose process has
/// ended without removing it is replaced if that process ran on this host.
class DirectoryLock {
 public:
  /// Throws ConfigError for checkpoint.directory if another process has the lock, or may have it.
  explicit DirectoryLock(const std::filesystem::path& directory);
  /// Removes the file.
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  std::filesystem::path file_;
  std::string mine_;
};

}  // namespace tessera
