// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <cmath>
#include <vector>

#include <tessera/base/text.hpp>
#include <tessera/base/toml_value.hpp>

namespace tessera {
namespace {

/// Returns a part of a key as TOML writes it.
std::string key_part(const std::string& name) {
  const auto bare = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
  return !name.empty() && std::all_of(name.begin(), name.end(), bare) ? name : to_toml(name);
}

}  // namespace

std::string entry_key(std::string_view table, const std::string& name) {
  return fmt::format("{}.{}", table, key_part(name));
}

std::string to_toml(const nlohmann::json& value) {
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::isnan(number)) return "nan";
    if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
    const std::string text = fmt::format("{}", number);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }
  if (value.is_array() || value.is_object()) {
    std::vector<std::string> parts;
    for (const auto& [key, item] : value.items())
      parts.push_back(value.is_array() ? to_toml(item)
                                       : fmt::format("{} = {}", key_part(key), to_toml(item)));
    return value.is_array() ? fmt::format("[{}]", join(parts)) : fmt::format("{{{}}}", join(parts));
  }
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tessera
