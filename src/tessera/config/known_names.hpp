// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/plan/strategy.hpp>

namespace tessera {

/// A name that a setting knows. Where `unavailable` is not empty it says why the name cannot be
/// used, so that asking for it gets an answer other than "unknown".
struct KnownName {
  std::string_view name;
  std::string_view unavailable = "";
};

/// Every strategy that plans know.
inline constexpr auto known_strategies = [] {
  std::array<KnownName, names_of<Strategy>.size()> known{};
  for (std::size_t s = 0; s < known.size(); ++s) known[s].name = names_of<Strategy>[s];
  return known;
}();

inline constexpr std::array known_backends{
    KnownName{"auto"},
    KnownName{"mpi"},
    KnownName{"nccl"},
    KnownName{"gloo", "is not available, use mpi"},
};

inline constexpr std::array known_gradient_reduce_types{KnownName{"mean"}, KnownName{"sum"}};

/// Mesh axes, slowest first: the order in which a mesh made from sizes alone arranges them.
inline constexpr std::array known_axes{
    KnownName{"pipeline"},
    KnownName{"data"},
    KnownName{"fsdp"},
    KnownName{"model"},
};

/// All of them, available or not.
std::vector<std::string_view> names_in(std::span<const KnownName> known);

/// "must be one of mean, sum", with the nearest of the names when `wrong` looks like one.
std::string must_be_one_of(std::string_view wrong, std::span<const std::string_view> names);

/// Throws ConfigError unless `value` is a known name; also for an unavailable one.
void check_name(std::string_view key, const std::string& value, std::span<const KnownName> known);

}  // namespace tessera
