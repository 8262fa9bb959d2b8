// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace tessera {

/// The names of an enumeration in the order of its enumerators. An enumeration that has some
/// specialises this beside its definition.
template <class Enum>
inline constexpr std::array<std::string_view, 0> names_of{};

template <class Enum>
concept Named = !names_of<Enum>.empty();

template <Named Enum>
constexpr std::string_view name_of(Enum value) {
  return names_of<Enum>[static_cast<std::size_t>(value)];
}

}  // namespace tessera
