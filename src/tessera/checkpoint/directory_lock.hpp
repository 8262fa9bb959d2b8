// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

namespace tessera {

/// While one lives, no other process gets one for the same directory of checkpoints: its file
/// "lock" names host and process. Works without locks of the file system. A thread counts a number
/// in the file up, so that other hosts see that the process is alive. A lock whose process has
/// ended without removing it is replaced: at once if that process ran on this host, else after six
/// intervals in which nobody counted.
class DirectoryLock {
 public:
  /// Throws ConfigError for checkpoint.directory if a live process has the lock.
  explicit DirectoryLock(const std::filesystem::path& directory,
                         std::chrono::milliseconds interval = std::chrono::seconds(5));
  /// Removes the file.
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  /// Returns false if another process has replaced the lock, as after this one was suspended.
  bool is_held() const;

 private:
  bool take();
  bool is_alive(const std::string& text, std::chrono::milliseconds interval) const;
  void count_up(std::chrono::milliseconds interval);

  std::filesystem::path file_;
  std::string mine_;  ///< the text before the number
  int id_ = -1;       ///< of the open file, which stays this one when another gets its name
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::thread counter_;
};

}  // namespace tessera
