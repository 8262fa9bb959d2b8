// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tessera {

/// Returns an error that names the first argument that only one of a rank and rank 0 has; "" if
/// both have the same ones, in any order. Arguments that begin with --kokkos- may differ, because
/// they choose GPUs.
std::string other_arguments_error(const std::vector<std::string>& of_rank,
                                  const std::vector<std::string>& of_first, int rank);

}  // namespace tessera
