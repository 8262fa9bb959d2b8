// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

namespace tessera {

/// Gives one process a directory of checkpoints. Its file "lock" names host and process, and a
/// thread increments a number in it, so that others see that the process is alive. Needs no locks
/// of the file system. A lock that an ended process has left is replaced: at once if the process
/// does not exist on this host, otherwise after six intervals without an increment.
class DirectoryLock {
 public:
  /// Creates the file. Throws ConfigError for checkpoint.directory if a live process has the lock.
  explicit DirectoryLock(const std::filesystem::path& directory,
                         std::chrono::milliseconds interval = std::chrono::seconds(5));
  /// Removes the file.
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  /// Returns false if another process has replaced the lock, for example while this one was
  /// suspended.
  bool is_held() const;

  /// Returns the begin of the text of this lock, which no other lock has.
  const std::string& owner() const { return mine_; }

  /// Returns true if this process finds the lock of `owner` in the directory. If the owner is on
  /// another host, waits up to 30 s, as long as NFS may show old names.
  static bool is_visible(const std::filesystem::path& directory, const std::string& owner);

 private:
  bool take();
  bool is_alive(const std::string& text, std::chrono::milliseconds interval) const;
  void count_up(const std::stop_token& stop, std::chrono::milliseconds interval) const;

  std::filesystem::path file_;
  std::string mine_;  ///< the text before the number
  int id_ = -1;       ///< the open file; stays this file if another one takes its name
  std::jthread counter_;
};

}  // namespace tessera
