// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/argument_hints.hpp>
#include <tessera/config/settings.hpp>

namespace tessera {

std::string hint_for_command(const std::string& word, const std::vector<std::string>& commands) {
  if (const auto near = suggest_nearest(word, commands))
    return fmt::format("; did you mean {}?", *near);
  const bool is_file = word.ends_with(".toml");
  return is_file ? fmt::format("; did you mean run {}?", excerpt(word)) : "";
}

std::string hint_for_option(const std::string& option, const std::vector<std::string>& options) {
  const auto has = [&](const char* name) {
    return std::ranges::find(options, name) != options.end();
  };
  if (const auto near = suggest_nearest(option, options))
    return fmt::format("; did you mean {}?", *near);
  std::string name = option.substr(2);
  std::ranges::replace(name, '-', '_');
  const std::string key = has("--set") ? suggest_key(name) : "";
  constexpr std::string_view axis = "the mesh axis ";
  if (key.starts_with(axis))
    return has("--mesh") ? fmt::format("; did you mean --mesh {}=N?", key.substr(axis.size())) : "";
  const char* const value = key.find('=') == key.npos ? "=VALUE" : "";
  return key.empty() ? "" : fmt::format("; did you mean --set {}{}?", key, value);
}

}  // namespace tessera
