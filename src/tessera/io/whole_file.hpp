// SPDX-License-Identifier: Apache-2.0
// Files that a user names, read and written as a whole. They must be regular files: to open a FIFO
// may wait forever, a device may have no end, and a file that replaces one breaks its users.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>

#include <nlohmann/json.hpp>

#include <tessera/base/types.hpp>

namespace tessera {

/// Returns "" if this is a regular file that can be read. Otherwise returns the reason as a phrase:
/// "must be a regular file, not a FIFO", "cannot be read: Permission denied". Never waits.
std::string why_unreadable(const std::filesystem::path& path);

/// Returns the text of a regular file. Throws Error (usage) if it cannot be read or is longer.
std::string read_text(const std::filesystem::path& path, Size most_bytes = 1 << 20);

/// Throws ConfigError for `key` if write_text() is known to fail. Call it before a long run.
/// Creates nothing, so that bad input leaves no files.
void check_writable(const std::string& key, const std::filesystem::path& path);

/// Makes a directory and those above it. Throws ConfigError for `key` if it cannot.
void make_directory(const std::string& key, const std::filesystem::path& path);

/// Writes a file completely or not at all: `write` fills a temporary file in the same directory,
/// which is then renamed. Follows symbolic links, also to a file that does not exist yet. Throws
/// Error (usage) with the system's reason, or if the path exists and is no regular file.
void write_whole(const std::filesystem::path& path,
                 const std::function<void(std::ostream&)>& write);
void write_text(const std::filesystem::path& path, const std::string& text);
void write_json(const std::filesystem::path& path, const nlohmann::json& document);

/// Throws Error (usage) if the path exists and is no regular file. Does not follow links.
void check_replaceable(const std::filesystem::path& path);

/// Follows the symbolic links of the last component to a target, which need not exist.
std::filesystem::path target_of_links(std::filesystem::path path);

/// Returns the absolute path. Throws Error (usage) if the working directory has been removed.
std::filesystem::path absolute_path(const std::filesystem::path& path);

}  // namespace tessera
