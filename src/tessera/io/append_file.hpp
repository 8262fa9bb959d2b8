// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace tessera {

/// A file that grows by whole records, each written with one system call. Locked: only one process
/// at a time may have it. All functions throw Error (usage) with the path and the reason.
class AppendFile {
 public:
  /// Opens or creates a regular file.
  explicit AppendFile(std::filesystem::path path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// Keeps the lines from the start of the file up to the first one that `keep` rejects or that has
  /// no end, and removes the rest.
  void keep_lines(const std::function<bool(const std::string& line)>& keep) const;
  void append(std::string_view record) const;

 private:
  [[noreturn]] void fail(std::string_view what) const;

  std::filesystem::path path_;
  int id_ = -1;
};

}  // namespace tessera
