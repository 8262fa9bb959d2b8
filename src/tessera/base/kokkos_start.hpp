// SPDX-License-Identifier: Apache-2.0
// Kokkos as it starts and what it is.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// "4.5.1".
std::string kokkos_version();
std::string kokkos_kernels_version();

/// What Kokkos is started with. None: it decides itself.
struct KokkosChoice {
  std::optional<int> device{};
  std::optional<int> threads{};
};

/// The arguments that Kokkos gets: those of `arguments` that begin with --kokkos-, and the choice,
/// as far as neither they nor the user's environment have made it. Throws Error (usage) for a flag
/// that Kokkos does not have, and one that lacks its number.
std::vector<std::string> kokkos_arguments(const std::vector<std::string>& arguments,
                                          const KokkosChoice& choice);

/// Initialises Kokkos and removes the --kokkos- arguments from argv. Arguments without that prefix
/// are hidden from Kokkos, which would otherwise answer --help itself.
void initialize_kokkos(int& argc, char** argv, const KokkosChoice& choice);

/// Whether Kokkos threw this because memory ran out; it has no class of its own for that.
bool is_allocation_failure(const std::exception& error);

}  // namespace tessera
