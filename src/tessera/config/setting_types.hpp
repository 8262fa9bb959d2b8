// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/error.hpp>
#include <tessera/config/config.hpp>
#include <tessera/config/known_names.hpp>
#include <tessera/config/toml_text.hpp>

/// How each C++ type of a setting is read from and written as JSON, and what a wrong value is told.
namespace tessera::setting_types {

using Names = std::span<const std::string_view>;

/// What an enumeration may be set to. A network has one of the first two element types; messages
/// also move integers.
template <Named Enum>
constexpr Names values_of() {
  return Names(names_of<Enum>).first(std::is_same_v<Enum, DType> ? 2 : names_of<Enum>.size());
}

template <class T>
struct Reader;

template <>
struct Reader<bool> {
  static constexpr std::string_view expected = "true or false";
  static bool accepts(const nlohmann::json& value) { return value.is_boolean(); }
};

template <>
struct Reader<Size> {
  static constexpr std::string_view expected = "an integer";
  static bool accepts(const nlohmann::json& value) { return value.is_number_integer(); }
};

template <>
struct Reader<std::uint64_t> {
  static constexpr std::string_view expected = "an integer from 0 to 2^63 - 1";
  static bool accepts(const nlohmann::json& value) {
    return value.is_number_integer() && value.get<std::int64_t>() >= 0;
  }
};

template <>
struct Reader<double> {
  static constexpr std::string_view expected = "a number";
  static bool accepts(const nlohmann::json& value) { return value.is_number(); }
};

template <>
struct Reader<std::string> {
  static constexpr std::string_view expected = "a string";
  static bool accepts(const nlohmann::json& value) { return value.is_string(); }
};

template <class T>
bool accepts_list(const nlohmann::json& value) {
  if (!value.is_array()) return false;
  for (const auto& item : value)
    if (!Reader<T>::accepts(item)) return false;
  return true;
}

template <>
struct Reader<std::vector<Size>> {
  static constexpr std::string_view expected = "a list of integers";
  static bool accepts(const nlohmann::json& value) { return accepts_list<Size>(value); }
};

template <>
struct Reader<std::vector<std::string>> {
  static constexpr std::string_view expected = "a list of strings";
  static bool accepts(const nlohmann::json& value) { return accepts_list<std::string>(value); }
};

template <class T>
void assign(std::string_view key, const nlohmann::json& value, T& member) {
  if constexpr (std::is_enum_v<T>) {
    constexpr Names names = values_of<T>();
    const std::string name = value.is_string() ? value.get<std::string>() : to_toml(value);
    const auto found = std::find(names.begin(), names.end(), name);
    if (!value.is_string() || found == names.end())
      throw ConfigError(key, to_toml(value), must_be_one_of(name, names));
    member = static_cast<T>(found - names.begin());
  } else {
    if (!Reader<T>::accepts(value))
      throw ConfigError(key, to_toml(value), "must be " + std::string(Reader<T>::expected));
    member = value.get<T>();
  }
}

template <class T>
void assign(std::string_view key, const nlohmann::json& value, std::optional<T>& member) {
  T given{};
  assign(key, value, given);
  member = given;
}

template <class T>
inline constexpr bool is_table = false;
template <class T>
inline constexpr bool is_table<std::map<std::string, T>> = true;

/// One entry of a table. A single string is a list of one.
template <class T>
void assign_entry(std::string_view key, const std::string& name, const nlohmann::json& value,
                  std::map<std::string, T>& table) {
  const std::string path = entry_key(key, name);
  T entry{};
  if (std::is_same_v<T, std::vector<std::string>> && value.is_string())
    assign(path, nlohmann::json::array({value}), entry);
  else
    assign(path, value, entry);
  table[name] = std::move(entry);
}

/// Replaces the table as a whole.
template <class T>
void assign(std::string_view key, const nlohmann::json& value, std::map<std::string, T>& member) {
  if (!value.is_object())
    throw ConfigError(
        key, to_toml(value),
        "must be a table, as in {} or {name = ...}, each of " + std::string(Reader<T>::expected));
  std::map<std::string, T> table;
  for (const auto& [name, entry] : value.items()) assign_entry(key, name, entry, table);
  member = std::move(table);
}

template <class T>
nlohmann::json as_json(const T& member) {
  if constexpr (std::is_enum_v<T>) {
    constexpr Names names = values_of<T>();
    const auto index = static_cast<std::size_t>(member);
    return index < names.size() ? nlohmann::json(names[index]) : nlohmann::json(index);
  } else {
    return member;
  }
}

/// An object also where it is empty.
template <class T>
nlohmann::json as_json(const std::map<std::string, T>& member) {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [name, entry] : member) object[name] = entry;
  return object;
}

template <class T>
nlohmann::json as_json(const std::optional<T>& member) {
  return member ? as_json(*member) : nlohmann::json();
}

}  // namespace tessera::setting_types
