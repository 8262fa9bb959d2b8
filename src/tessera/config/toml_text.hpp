// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>

namespace tessera {

/// A key "section.key" and its value. The value is JSON, onto which TOML maps one to one; dates and
/// times become text. A "~" at the start of a string is replaced (with_home).
struct GivenValue {
  std::string key{};
  nlohmann::json value{};
};

/// Returns the keys of a TOML document in the order of its text. Tables are flattened with dots;
/// an empty table is a value. Throws Error (usage) with `source` and line of a malformed document.
std::vector<GivenValue> parse_toml(std::string_view document, const std::string& source);

/// Parses "section.key=value" from a command line. The key may quote its parts as TOML does. The
/// value is TOML, or a bare word that stands for a string. If `is_text` of the key is true, 12345
/// and true are strings, too. Throws ConfigError if there is no key or no "=".
GivenValue parse_assignment(const std::string& text,
                            const std::function<bool(const std::string& key)>& is_text);

/// Returns section.table.name. Quotes the name if TOML requires it.
std::string entry_key(std::string_view table, const std::string& name);

/// Returns a value as TOML on one line.
std::string to_toml(const nlohmann::json& value);

/// Throws ConfigError for the value of a key. `allowed` says which values are allowed.
[[noreturn]] inline void reject(std::string_view key, const nlohmann::json& value,
                                const std::string& allowed) {
  throw ConfigError(key, to_toml(value), allowed);
}
template <class... Args>
[[noreturn]] void reject(std::string_view key, const nlohmann::json& value,
                         fmt::format_string<Args...> allowed, Args&&... args) {
  reject(key, value, fmt::format(allowed, std::forward<Args>(args)...));
}

}  // namespace tessera
