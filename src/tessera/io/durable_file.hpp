// SPDX-License-Identifier: Apache-2.0
// Files that survive a crash. All functions throw Error (usage) with the path and the system's
// reason.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <tessera/base/split.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// The answer of OpenFile::lock(): the lock is taken, another open file has it, or the file system
/// has no locks.
enum class Lock : std::uint8_t { taken, held, none };

/// A file or directory. Threads and processes may write to different parts of it at the same time,
/// and read from any.
class OpenFile {
 public:
  /// `flags`: as for open(); with O_CREAT it makes the file.
  OpenFile(const std::filesystem::path& path, int flags);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  /// Reserves disk space for these bytes, so that later writes do not run out of it. Keeps the
  /// content.
  void reserve_space(const Range& bytes) const;
  /// Reads `count` bytes that start at `place`, which must exist.
  void read(Size place, void* bytes, Size count) const;
  /// Replaces `count` bytes that start at `place`.
  void write(Size place, const void* bytes, Size count) const;
  /// Returns when everything written is on the disk.
  void sync() const;
  /// Locks the file until this object or the process ends.
  Lock lock() const;

 private:
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path path_;
  int id_;
};

/// Returns true if the path is on NFS.
bool is_on_nfs(const std::filesystem::path& path);

/// Returns when the content of a file, or of a directory, is on the disk.
void sync_to_disk(const std::filesystem::path& path);

/// Renames a file and syncs the directory. Replaces a regular file, and nothing else.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Writes a small file and syncs it.
void write_durably(const std::filesystem::path& path, const std::string& text);

}  // namespace tessera
