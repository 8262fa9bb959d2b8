// SPDX-License-Identifier: Apache-2.0
// Files that a user names, read and written as a whole. Only regular files are: to open a FIFO may
// wait for ever, a device may never end, and a file put in the place of one breaks what uses it.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>

#include <nlohmann/json.hpp>

#include <tessera/base/types.hpp>

namespace tessera {

/// Why there is no regular file that can be read, as a phrase: "must be a regular file, not a
/// FIFO", "cannot be read: Permission denied"; "" if there is one. Never waits.
std::string why_unreadable(const std::filesystem::path& path);

/// The text of a regular file. Throws Error (usage) if it cannot be read or has more bytes.
std::string read_text(const std::filesystem::path& path, Size most_bytes = 1 << 20);

/// Throws ConfigError for `key` if write_text() would not work, as far as it is known beforehand.
/// Creates nothing: it is asked before a long run, so that bad input leaves no trace.
void check_writable(const std::string& key, const std::filesystem::path& path);

/// Writes a file whole or not at all: `write` fills a temporary file beside it, which then takes
/// its name. A symbolic link is followed, also to a file that is not there yet. Throws Error
/// (usage) with the system's reason, also where there is something that is no regular file.
void write_whole(const std::filesystem::path& path,
                 const std::function<void(std::ostream&)>& write);
void write_text(const std::filesystem::path& path, const std::string& text);
void write_json(const std::filesystem::path& path, const nlohmann::json& document);

/// Throws Error (usage) if what has this name itself, link or not, is no regular file.
void check_replaceable(const std::filesystem::path& path);

/// The path from the root on. Throws Error (usage) where the working directory has been removed.
std::filesystem::path absolute_path(const std::filesystem::path& path);

}  // namespace tessera
