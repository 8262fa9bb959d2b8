// SPDX-License-Identifier: Apache-2.0
// Kokkos as it starts and what it is.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/process/launch.hpp>

namespace tessera {

/// "4.5.1".
std::string kokkos_version();
std::string kokkos_kernels_version();

/// A number that a user gives Kokkos.
struct AskedNumber {
  std::string name;  ///< of the flag or variable
  int number = 0;
};

/// `setting` is "num-threads" or "device-id": the last flag --kokkos-num-threads=N, else the
/// variable KOKKOS_NUM_THREADS. Throws Error (usage) for what is no such number, for which Kokkos
/// would end the process.
std::optional<AskedNumber> asked_number(const std::vector<std::string>& arguments,
                                        const Environment& environment, std::string_view setting);

/// Those that do not begin with --kokkos-, the last one first, as CLI11 takes them.
std::vector<std::string> reversed_own_arguments(const std::vector<std::string>& arguments);

/// What Kokkos is started with, whatever the user's flags and variables say. None: it decides
/// itself.
struct KokkosChoice {
  std::optional<int> device{};
  std::optional<int> threads{};
};

/// The arguments that Kokkos gets: the choice, and those of `arguments` that begin with --kokkos-
/// and are about neither threads nor device. Throws Error (usage) for a flag that it does not take.
std::vector<std::string> kokkos_arguments(const std::vector<std::string>& arguments,
                                          const KokkosChoice& choice);

/// Initialises Kokkos and removes the --kokkos- arguments from argv. Arguments without that prefix
/// are hidden from Kokkos, which would otherwise answer --help itself.
void initialize_kokkos(int& argc, char** argv, const KokkosChoice& choice);

/// Whether Kokkos threw this because memory ran out; it has no class of its own for that.
bool is_allocation_failure(const std::exception& error);

}  // namespace tessera
