// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <tessera/base/names.hpp>

namespace tessera {

/// Counts of elements, ranks and bytes: signed, so that differences are safe, and 64 bits wide.
using Size = std::int64_t;

/// Element types that tensors hold and communicators move.
enum class DType : std::uint8_t { float32, float64, int32, int64 };

template <class T>
inline constexpr bool is_element_v =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t> ||
    std::is_same_v<T, std::int64_t>;

template <class T>
constexpr DType dtype_of() {
  static_assert(is_element_v<T>, "elements are float, double, int32 or int64");
  if constexpr (std::is_same_v<T, float>) return DType::float32;
  if constexpr (std::is_same_v<T, double>) return DType::float64;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::int32;
  return DType::int64;
}

/// Bytes of one element.
constexpr Size size_of(DType type) {
  return type == DType::float32 || type == DType::int32 ? 4 : 8;
}

template <>
inline constexpr std::array<std::string_view, 4> names_of<DType>{"float32", "float64", "int32",
                                                                 "int64"};

}  // namespace tessera
