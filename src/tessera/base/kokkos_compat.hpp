// SPDX-License-Identifier: Apache-2.0
// What differs between Kokkos 3.4 and 5.x, in one place.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

namespace tessera {

/// What create_mirror_view() makes of a View: the name of the member type changed in Kokkos 4.5.
template <class V>
using HostMirror = decltype(Kokkos::create_mirror_view(std::declval<const V&>()));

/// "3.4.1".
std::string kokkos_version();

/// "4.2.0"; "unknown" before Kokkos Kernels 4.0, which does not tell.
std::string kokkos_kernels_version();

/// The arguments that Kokkos gets, spelled as this version of Kokkos expects: those of `arguments`
/// that begin with --kokkos-, and `device_id`, if any, unless they or the user's environment choose
/// a device.
std::vector<std::string> kokkos_arguments(const std::vector<std::string>& arguments,
                                          std::optional<int> device_id,
                                          int kokkos_version_number = KOKKOS_VERSION);

/// Initialises Kokkos and removes the --kokkos- arguments from argv. Arguments without that prefix
/// are hidden from Kokkos, which would otherwise answer --help itself.
void initialize_kokkos(int& argc, char** argv, std::optional<int> device_id);

/// Whether Kokkos threw this because memory ran out; it has no class of its own for that.
bool is_allocation_failure(const std::exception& error);

}  // namespace tessera
