// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace tessera {

/// The names of an enumeration's values, in their order. An enumeration with names specializes this
/// beside its definition.
template <class Enum>
inline constexpr std::array<std::string_view, 0> names_of{};

template <class Enum>
concept Named = !names_of<Enum>.empty();

template <Named Enum>
constexpr std::string_view name_of(Enum value) {
  return names_of<Enum>[static_cast<std::size_t>(value)];
}

/// Returns the value with this name, if there is one.
template <Named Enum>
constexpr std::optional<Enum> value_named(std::string_view name) {
  for (std::size_t i = 0; i < names_of<Enum>.size(); ++i)
    if (names_of<Enum>[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace tessera
