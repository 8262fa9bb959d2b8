// SPDX-License-Identifier: Apache-2.0
// The C++ types of fields as JSON. A type of its own has overloads of type_text(), assign() and
// as_json() beside it.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/names.hpp>
#include <tessera/base/other_names.hpp>
#include <tessera/base/text.hpp>
#include <tessera/base/toml_value.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// Returns "; did you mean fsdp?" for a wrong name of a value, or "".
using HintFor = std::string (*)(std::string_view wrong, std::span<const std::string_view> names);

/// The names that a value of this type may have. A field takes only the first two element types, in
/// which steps compute.
template <Named Enum>
constexpr std::span<const std::string_view> values_of() {
  return std::span(names_of<Enum>).first(std::same_as<Enum, DType> ? 2 : names_of<Enum>.size());
}

inline std::string type_text(bool) { return "true or false"; }
inline std::string type_text(Size) { return "an integer"; }
inline std::string type_text(std::uint64_t) { return "an integer from 0 to 2^63 - 1"; }
inline std::string type_text(double) { return "a number"; }
inline std::string type_text(const std::string&) { return "a string"; }
inline std::string type_text(const std::vector<Size>&) { return "a list of integers"; }
inline std::string type_text(const std::vector<std::string>&) { return "a list of strings"; }
template <Named Enum>
std::string type_text(Enum) {
  return "one of " + join(values_of<Enum>());
}
template <class T>
std::string type_text(const std::optional<T>&) {
  return type_text(T{});
}
template <class T>
std::string type_text(const std::map<std::string, T>&) {
  return "a table, as in {} or {name = ...}, each of " + type_text(T{});
}

template <class T>
bool accepts(const nlohmann::json& value, const T&) {
  if constexpr (std::same_as<T, bool>)
    return value.is_boolean();
  else if constexpr (std::same_as<T, std::uint64_t>)
    return value.is_number_integer() && value.get<std::int64_t>() >= 0;
  else if constexpr (std::integral<T>)
    return value.is_number_integer();
  else if constexpr (std::floating_point<T>)
    return value.is_number();
  else
    return value.is_string();
}
template <class T>
bool accepts(const nlohmann::json& value, const std::vector<T>&) {
  return value.is_array() &&
         std::ranges::all_of(value, [](const nlohmann::json& item) { return accepts(item, T{}); });
}

/// Sets a member to a value. Throws ConfigError for a value of another type.
template <class T>
void assign(std::string_view key, const nlohmann::json& value, T& member,
            HintFor hint_for = did_you_mean) {
  if constexpr (Named<T>) {
    const auto names = values_of<T>();
    const std::string name = value.is_string() ? value.get<std::string>() : to_toml(value);
    const auto found = std::ranges::find(names, value.is_string() ? name : "");
    if (found == names.end())
      reject(key, value, "must be " + type_text(member) + hint_for(name, names));
    member = static_cast<T>(found - names.begin());
  } else {
    if (!accepts(value, member)) reject(key, value, "must be " + type_text(member));
    member = value.get<T>();
  }
}
template <class T>
void assign(std::string_view key, const nlohmann::json& value, std::optional<T>& member,
            HintFor hint_for = did_you_mean) {
  T given{};
  assign(key, value, given, hint_for);
  member = given;
}
/// In a table of lists, a single string stands for a list of one.
template <class T>
void assign(std::string_view key, const nlohmann::json& value, std::map<std::string, T>& member,
            HintFor = did_you_mean) {
  if (!value.is_object()) reject(key, value, "must be " + type_text(member));
  std::map<std::string, T> table;
  for (const auto& [name, entry] : value.items()) {
    const bool is_one = std::same_as<T, std::vector<std::string>> && entry.is_string();
    assign(entry_key(key, name), is_one ? nlohmann::json::array({entry}) : entry, table[name]);
  }
  member = std::move(table);
}

/// Returns a value as JSON; the number of an enumerator without a name.
template <class T>
nlohmann::json as_json(const T& member) {
  if constexpr (Named<T>) {
    const auto index = static_cast<std::size_t>(member);
    return index < values_of<T>().size() ? nlohmann::json(name_of(member)) : nlohmann::json(index);
  } else {
    return member;
  }
}
template <class T>
nlohmann::json as_json(const std::optional<T>& member) {
  return member ? as_json(*member) : nlohmann::json();
}
/// Returns an object, even for an empty table.
template <class T>
nlohmann::json as_json(const std::map<std::string, T>& member) {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [name, entry] : member) object[name] = entry;
  return object;
}

/// True for a free string and for a table of free strings.
template <class T>
inline constexpr bool is_free_text =
    std::same_as<T, std::string> || std::same_as<T, std::map<std::string, std::string>>;

}  // namespace tessera
