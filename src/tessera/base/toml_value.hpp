// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>

namespace tessera {

/// Returns a value as TOML on one line.
std::string to_toml(const nlohmann::json& value);

/// Returns section.table.name. Quotes the name if TOML requires it.
std::string entry_key(std::string_view table, const std::string& name);

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
