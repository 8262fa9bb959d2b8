// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <tessera/base/names.hpp>

namespace tessera {

/// Counts of elements, ranks and bytes. Signed, so that differences are safe.
using Size = std::int64_t;

// 16-bit floating-point numbers (half_float.hpp).
template <class Format>
class HalfFloat;
namespace detail {
struct BFloat16Format;
struct Float16Format;
}  // namespace detail
using BFloat16 = HalfFloat<detail::BFloat16Format>;
using Float16 = HalfFloat<detail::Float16Format>;
template <class T>
inline constexpr bool is_half_v = std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>;

/// For activations of type T: the type of the optimizer's parameters, of gradients and moments, and
/// of sums over ranks.
template <class T>
using StateOf = std::conditional_t<is_half_v<T>, float, T>;

/// Element types of tensors and messages.
enum class DType : std::uint8_t { float32, float64, int32, int64, bfloat16, float16 };

template <class T>
inline constexpr bool is_element_v =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int32_t> ||
    std::is_same_v<T, std::int64_t> || is_half_v<T>;

template <class T>
constexpr DType dtype_of() {
  static_assert(is_element_v<T>, "elements are float, double, int32, int64, BFloat16 or Float16");
  if constexpr (std::is_same_v<T, float>) return DType::float32;
  if constexpr (std::is_same_v<T, double>) return DType::float64;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::int32;
  if constexpr (std::is_same_v<T, BFloat16>) return DType::bfloat16;
  if constexpr (std::is_same_v<T, Float16>) return DType::float16;
  return DType::int64;
}

constexpr bool is_half(DType type) { return type == DType::bfloat16 || type == DType::float16; }

/// Returns the bytes of one element.
constexpr Size size_of(DType type) {
  if (is_half(type)) return 2;
  return type == DType::float32 || type == DType::int32 ? 4 : 8;
}

template <>
inline constexpr std::array<std::string_view, 6> names_of<DType>{"float32", "float64",  "int32",
                                                                 "int64",   "bfloat16", "float16"};

}  // namespace tessera

/// Applies a macro to each floating-point type.
#define TESSERA_FOR_COMPUTE_TYPES(apply) \
  apply(float) apply(double) apply(::tessera::BFloat16) apply(::tessera::Float16)

/// Instantiates a class template for each floating-point type, in the source with its definitions.
#define TESSERA_INSTANTIATE_CLASS(name)     \
  template class name<float>;               \
  template class name<double>;              \
  template class name<::tessera::BFloat16>; \
  template class name<::tessera::Float16>
