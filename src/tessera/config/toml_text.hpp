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

/// "section.key" and the value that somebody gave it. Values are JSON because TOML scalars and
/// lists map onto it one to one; dates and times, which nothing here wants, become their text.
struct GivenValue {
  std::string key{};
  nlohmann::json value{};
};

/// The keys of a TOML document in the order of its text, tables flattened with dots; an empty table
/// stands as such.
/// `source` is named in errors. Throws ConfigError with the line of a malformed document.
std::vector<GivenValue> parse_toml(std::string_view document, const std::string& source);

/// "section.key=value" from a command line: the key may quote its parts as TOML does. The value is
/// TOML, or else a bare word that stands for a string. The value of a key that `is_text` is text as
/// it stands, 12345 and true included, unless it is a string in quotes. Throws ConfigError if there
/// is no key or no "=".
GivenValue parse_assignment(const std::string& text,
                            const std::function<bool(const std::string& key)>& is_text);

/// section.table.name, the name quoted unless it is made of letters, digits, - and _.
std::string entry_key(std::string_view table, const std::string& name);

/// A value as TOML writes it, on one line.
std::string to_toml(const nlohmann::json& value);

/// Throws ConfigError for the value of a key, with what is allowed as it stands or formatted.
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
