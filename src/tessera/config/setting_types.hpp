// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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
#include <tessera/base/other_names.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/config.hpp>
#include <tessera/config/settings.hpp>
#include <tessera/config/toml_text.hpp>

/// Reads and writes the C++ type of each setting as JSON, and rejects values of another type.
namespace tessera::setting_types {

using Names = std::span<const std::string_view>;

/// Returns the values that a setting may take. A network's element type is one of the first two.
template <Named Enum>
constexpr Names values_of() {
  return Names(names_of<Enum>).first(std::is_same_v<Enum, DType> ? 2 : names_of<Enum>.size());
}

template <class T>
inline constexpr std::string_view expected = "a string";
template <>
inline constexpr std::string_view expected<bool> = "true or false";
template <>
inline constexpr std::string_view expected<Size> = "an integer";
template <>
inline constexpr std::string_view expected<std::uint64_t> = "an integer from 0 to 2^63 - 1";
template <>
inline constexpr std::string_view expected<double> = "a number";
template <>
inline constexpr std::string_view expected<std::vector<Size>> = "a list of integers";
template <>
inline constexpr std::string_view expected<std::vector<std::string>> = "a list of strings";

template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;

template <class T>
bool accepts(const nlohmann::json& value) {
  if constexpr (std::is_same_v<T, bool>)
    return value.is_boolean();
  else if constexpr (std::is_same_v<T, std::uint64_t>)
    return value.is_number_integer() && value.get<std::int64_t>() >= 0;
  else if constexpr (std::is_same_v<T, Size>)
    return value.is_number_integer();
  else if constexpr (std::is_same_v<T, double>)
    return value.is_number();
  else if constexpr (is_list<T>)
    return value.is_array() &&
           std::all_of(value.begin(), value.end(), accepts<typename T::value_type>);
  else
    return value.is_string();
}

/// Returns "; did you mean fsdp?" for a wrong value, or "" without a suggestion.
template <class T>
std::string hint_for(const std::string& name) {
  return did_you_mean(name, values_of<T>());
}
/// Other programs count pipelines and the like among the strategies.
template <>
inline std::string hint_for<Strategy>(const std::string& name) {
  const std::string near = did_you_mean(name, values_of<Strategy>());
  const std::string key = key_of_other_tool(name);
  return near.empty() && !key.empty() ? "; did you mean " + key + "?" : near;
}
/// Computing with 16 bits is another key.
template <>
inline std::string hint_for<DType>(const std::string& name) {
  constexpr Names short_types = Names(names_of<MixedPrecision>).subspan(1);
  for (const std::string_view type : short_types)
    if (name == type || name_of_other_tool(name, short_types) == type)
      return fmt::format("; did you mean distributed.mixed_precision = \"{}\"?", type);
  return did_you_mean(name, values_of<DType>());
}

template <class T>
void assign(std::string_view key, const nlohmann::json& value, T& member) {
  if constexpr (std::is_enum_v<T>) {
    constexpr Names names = values_of<T>();
    const std::string name = value.is_string() ? value.get<std::string>() : to_toml(value);
    const std::optional<T> found = value_named<T>(value.is_string() ? name : "");
    if (!found || static_cast<std::size_t>(*found) >= names.size())
      reject(key, value, "must be one of " + join(names) + hint_for<T>(name));
    member = *found;
  } else {
    if (!accepts<T>(value)) reject(key, value, "must be " + std::string(expected<T>));
    member = value.get<T>();
  }
}

inline void assign(std::string_view key, const nlohmann::json& value, Recomputation& member) {
  if (value == "none") {
    member.units = 0;
  } else if (value == "full") {
    member.units = 1;
  } else {
    if (!value.is_number_integer() || value.get<Size>() < 1)
      reject(key, value, "must be \"none\", \"full\" or the number of layers per segment");
    member.units = value.get<Size>();
  }
}

inline void assign(std::string_view key, const nlohmann::json& value, MeshSizes& member) {
  const auto refuse = [&] {
    reject(key, value, "must be a list of integers, \"nodes\" and \"per_node\"");
  };
  if (!value.is_array()) refuse();
  MeshSizes sizes;
  for (const nlohmann::json& given : value) {
    const auto word = std::find_if(size_words.begin(), size_words.end(),
                                   [&](const SizeWord& known) { return given == known.name; });
    if (word != size_words.end())
      sizes.push_back(word->size);
    else if (given.is_number_integer() && given.get<Size>() > size_per_node)
      sizes.push_back(given.get<Size>());
    else
      refuse();
  }
  member = std::move(sizes);
}

template <class T>
void assign(std::string_view key, const nlohmann::json& value, std::optional<T>& member) {
  T given{};
  assign(key, value, given);
  member = given;
}

/// True for a free string and for a table of free strings.
template <class T>
inline constexpr bool is_text =
    std::is_same_v<T, std::string> || std::is_same_v<T, std::map<std::string, std::string>>;

/// In a table of lists, a single string stands for a list of one.
template <class T>
void assign(std::string_view key, const nlohmann::json& value, std::map<std::string, T>& member) {
  if (!value.is_object())
    reject(key, value,
           "must be a table, as in {} or {name = ...}, each of " + std::string(expected<T>));
  std::map<std::string, T> table;
  for (const auto& [name, entry] : value.items()) {
    const bool is_one = std::is_same_v<T, std::vector<std::string>> && entry.is_string();
    assign(entry_key(key, name), is_one ? nlohmann::json::array({entry}) : entry, table[name]);
  }
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

inline nlohmann::json as_json(const Recomputation& member) {
  if (member.units == 0) return "none";
  return member.units == 1 ? nlohmann::json("full") : nlohmann::json(member.units);
}

/// Returns an object, even for an empty table.
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
