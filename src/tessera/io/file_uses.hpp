// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tessera {

/// A file that a command reads or writes, or a directory in which it does.
struct FileUse {
  std::string key{};  ///< the setting or flag that names it
  std::filesystem::path path{};
  bool writes = false;
  /// For a directory: returns true for the files that the command uses there, by their paths
  /// relative to it. Unset for a file.
  std::function<bool(const std::string& name)> owns{};
};

/// Throws ConfigError with both uses if two of them are one file, also through symbolic or hard
/// links, and the command writes to it. Files need not exist. Writes nothing.
void check_distinct(const std::vector<FileUse>& uses);

}  // namespace tessera
