// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace tessera {

/// Throws ConfigError for `key` if a file at `path` could not be created or replaced. Creates
/// nothing: it is asked before a long run, so that bad input leaves no trace.
void check_writable(const std::string& key, const std::filesystem::path& path);

/// Writes the whole text or nothing: to a temporary name beside the file, then renamed. A pipe, a
/// device or a link is written to where it is. Throws Error (usage) with the system's reason.
void write_text(const std::filesystem::path& path, const std::string& text);
/// The same for a document.
void write_json(const std::filesystem::path& path, const nlohmann::json& document);

}  // namespace tessera
