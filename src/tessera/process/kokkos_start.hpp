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

/// Initializes Kokkos and removes the --kokkos- arguments from argv. It picks the GPU of a rank by
/// the launcher's local rank, unless the user asks for one. Without `threads` it picks their number
/// itself.
void initialize_kokkos(int& argc, char** argv, const std::optional<int>& threads);

}  // namespace tessera
