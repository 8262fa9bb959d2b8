// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/process/same_arguments.hpp>

namespace tessera {
namespace {

/// Returns the first argument that `of` has more often than `than`.
std::optional<std::string> extra_argument(const std::vector<std::string>& of,
                                          const std::vector<std::string>& than) {
  for (const std::string& argument : of)
    if (!argument.starts_with("--kokkos-") &&
        std::count(of.begin(), of.end(), argument) > std::count(than.begin(), than.end(), argument))
      return argument;
  return std::nullopt;
}

std::string difference(const std::string& argument, const std::string& has,
                       const std::string& lacks) {
  return fmt::format("{} is given on {} but not on {}; every rank needs the same arguments",
                     one_line(excerpt(argument)), has, lacks);
}

}  // namespace

std::string other_arguments_error(const std::vector<std::string>& of_rank,
                                  const std::vector<std::string>& of_first, int rank) {
  const std::string name = fmt::format("rank {}", rank);
  if (const auto extra = extra_argument(of_rank, of_first))
    return difference(*extra, name, "rank 0");
  if (const auto extra = extra_argument(of_first, of_rank))
    return difference(*extra, "rank 0", name);
  return "";
}

}  // namespace tessera
