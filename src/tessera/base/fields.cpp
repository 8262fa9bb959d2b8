// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include <tessera/base/fields.hpp>
#include <tessera/base/text.hpp>

namespace tessera {
namespace {

/// Returns the limit as an integer if it is one.
std::string limit_text(double limit) {
  constexpr double exact = 0x1p62;
  const bool is_integer = std::abs(limit) <= exact && std::trunc(limit) == limit;
  return is_integer ? with_thousands(static_cast<Size>(limit)) : fmt::format("{}", limit);
}

}  // namespace

void check_bounds(std::string_view key, const nlohmann::json& value, const Bounds& bounds) {
  if (!value.is_number()) return;
  // A double has too few bits for the seed 2^63 - 1.
  const long double number = value.is_number_unsigned()  ? value.get<std::uint64_t>()
                             : value.is_number_integer() ? value.get<std::int64_t>()
                                                         : value.get<long double>();
  const bool is_high_enough = bounds.above ? number > bounds.least : number >= bounds.least;
  const bool is_low_enough = bounds.below ? number < bounds.most : number <= bounds.most;
  const bool has_limits = bounds.least > -HUGE_VAL || bounds.most < HUGE_VAL;
  if (is_high_enough && is_low_enough && (std::isfinite(number) || !has_limits)) return;
  if (bounds.allowed != nullptr) reject(key, value, bounds.allowed);
  const bool is_real = value.is_number_float(), has_most = bounds.most < HUGE_VAL;
  if (bounds.above && has_most && is_high_enough)
    reject(key, value, "must be at most {}", limit_text(bounds.most));
  if (bounds.above)
    reject(key, value, is_real && !has_most ? "must be positive and finite" : "must be positive");
  if (has_most)
    reject(key, value, "must be from {} to {}", limit_text(bounds.least), limit_text(bounds.most));
  reject(key, value, is_real ? "must be finite and not negative" : "must not be negative");
}

}  // namespace tessera
