// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/process/launch.hpp>

namespace tessera {

/// "4.5.1".
std::string kokkos_version();
std::string kokkos_kernels_version();

/// A number that the user gives to Kokkos.
struct AskedNumber {
  std::string name;  ///< of the flag or the variable
  int number = 0;
};

/// Returns the value of the last flag --kokkos-NAME=N, or else of the variable KOKKOS_NAME. `name`
/// is "num-threads" or "device-id". Throws ConfigError for a value that is not a valid
/// number: Kokkos would abort.
std::optional<AskedNumber> asked_number(const std::vector<std::string>& arguments,
                                        const Environment& environment, std::string_view name);

/// Returns the arguments that do not begin with --kokkos-, in reverse order, which CLI11 expects.
/// Throws Error (usage) for an empty argument, and for --name= without a value: they are what an
/// unset variable of a script leaves, and CLI11 2.7 ignores such an option. Replaces a "~" at the
/// start of an argument or a value (with_home).
std::vector<std::string> reversed_own_arguments(const std::vector<std::string>& arguments);

/// Throws Error (usage) for an argument --kokkos-NAME with another name than asked_number() knows.
void check_kokkos_arguments(const std::vector<std::string>& arguments);

/// Returns the GPU of a rank that sees `gpus` of them, or none: the one that the user asks for, or
/// else they take turns by their rank on the node. Kokkos would find that rank with some launchers
/// only. Returns nothing if variables make Kokkos choose.
std::optional<int> gpu_of_rank(const std::vector<std::string>& arguments,
                               const Environment& environment, int local_rank,
                               const std::optional<int>& gpus);

/// Initializes Kokkos and removes the --kokkos- arguments from argv. Kokkos picks what is not
/// given.
void initialize_kokkos(int& argc, char** argv, const std::optional<int>& threads,
                       const std::optional<int>& gpu);

}  // namespace tessera
