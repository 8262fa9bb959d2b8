// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

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

}  // namespace tessera
