// SPDX-License-Identifier: Apache-2.0
// What it takes for a file to survive a crash. All of it throws Error (usage): the path and the
// system's reason.
#pragma once

#include <filesystem>
#include <string>

#include <tessera/base/split.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// A file that is there. Threads and processes may change parts of it side by side.
class OpenFile {
 public:
  OpenFile(const std::filesystem::path& path, int flags);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  /// Takes the space for these bytes of the file, so that writing to them does not fail for lack of
  /// it later. What is there stays.
  void reserve_space(const Range& bytes) const;
  /// Replaces bytes from `place` on.
  void write(Size place, const void* bytes, Size count) const;
  /// Returns when all that has been written is on the disk.
  void sync() const;

 private:
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path path_;
  int id_;
};

/// Returns when the content of a file, or the names in a directory, are on the disk.
void sync_to_disk(const std::filesystem::path& path);

/// Gives a file its name, in place of another regular file that has it, and syncs the directory.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

/// Writes a small file and syncs it.
void write_durably(const std::filesystem::path& path, const std::string& text);

}  // namespace tessera
