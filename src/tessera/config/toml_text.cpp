// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>

#include <toml++/toml.h>

#include <tessera/base/error.hpp>
#include <tessera/base/home.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/toml_text.hpp>

namespace tessera {
namespace {

nlohmann::json to_json(const toml::node& node) {
  if (const auto* text = node.as_string()) return with_home(text->get());
  if (const auto* number = node.as_integer()) return number->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* list = node.as_array()) {
    nlohmann::json out = nlohmann::json::array();
    for (const auto& item : *list) out.push_back(to_json(item));
    return out;
  }
  if (const auto* table = node.as_table()) {
    nlohmann::json out = nlohmann::json::object();
    for (const auto& [key, item] : *table) out[std::string(key.str())] = to_json(item);
    return out;
  }
  std::ostringstream text;
  node.visit([&](const auto& value) {
    if constexpr (toml::is_date<decltype(value)> || toml::is_time<decltype(value)> ||
                  toml::is_date_time<decltype(value)>)
      text << value.get();
  });
  return text.str();
}

/// Bounds the depth of dotted keys such as a.a.a = 1. The parser recurses into them and bounds
/// only the depth of brackets.
void check_depth(std::string_view text, const std::string& source) {
  constexpr Size limit = 1000;
  const std::vector<std::string> lines = split_text(text, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (std::count(lines[i].begin(), lines[i].end(), '.') > limit)
      throw Error(ExitCode::usage, "{}:{}: more than {} dots in one line", source, i + 1, limit);
}

struct Located {
  toml::source_position position;
  GivenValue given;
};

void flatten(const toml::table& table, const std::string& prefix, std::vector<Located>& out) {
  for (const auto& [key, node] : table) {
    const std::string path = prefix + std::string(key.str());
    if (const auto* section = node.as_table(); section != nullptr && !section->empty())
      flatten(*section, path + ".", out);
    else
      out.push_back({node.source().begin, {path, to_json(node)}});
  }
}

/// Removes the quotes of a key. Text that is not one TOML key stays as it is; set() then rejects it
/// as unknown.
std::string unquote_key(const std::string& key) {
  if (key != one_line(key)) return key;  // more than a key
  try {
    std::vector<Located> located;
    flatten(toml::parse(key + " = 0"), "", located);
    if (located.size() == 1) return located[0].given.key;
  } catch (const toml::parse_error&) {
    // A bare slash, as in distributed.parameter_specs.layer1/kernel, is not TOML.
  }
  return key;
}

}  // namespace

std::vector<GivenValue> parse_toml(std::string_view document, const std::string& source) {
  check_depth(document, source);
  std::vector<Located> located;
  try {
    flatten(toml::parse(document, source), "", located);
  } catch (const toml::parse_error& error) {
    throw Error(ExitCode::usage, "{}:{}: {}", source, error.source().begin.line,
                excerpt(one_line(error.description()), 200));
  }
  std::stable_sort(located.begin(), located.end(), [](const Located& a, const Located& b) {
    return a.position.line < b.position.line;
  });
  std::vector<GivenValue> given;
  for (Located& item : located) given.push_back(std::move(item.given));
  return given;
}

GivenValue parse_assignment(const std::string& text,
                            const std::function<bool(const std::string& key)>& is_text) {
  const std::size_t equals = text.find('=');
  const std::string key = one_line(trim(std::string_view(text).substr(0, equals)));
  if (equals == std::string::npos || key.empty())
    throw ConfigError("--set", one_line(text), "must be section.key=value");
  const std::string value(trim(std::string_view(text).substr(equals + 1)));
  check_depth(key, "--set");
  check_depth(value, "--set " + key);
  const std::string unquoted = unquote_key(key);
  try {
    const toml::table parsed = toml::parse("value = " + value);
    const toml::node& node = *parsed.get("value");
    if (parsed.size() == 1 && (node.is_string() || !is_text(unquoted)))
      return {unquoted, to_json(node)};
  } catch (const toml::parse_error&) {
    // A bare word such as adamw is no TOML value. The setting checks it.
  }
  return {unquoted, with_home(value)};
}

}  // namespace tessera
