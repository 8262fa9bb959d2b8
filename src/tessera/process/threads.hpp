// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tessera/process/kokkos_start.hpp>

namespace tessera {

/// Returns the processors of each core, by the core's lowest processor, which need not be one of
/// `processors`. `siblings` returns the hardware threads of a processor's core, such as "0,4" or
/// "0-1"; "" if they are unknown.
std::map<int, std::vector<int>> cores_of(std::span<const int> processors,
                                         const std::function<std::string(int)>& siblings);

/// Returns cores_of() the processors that this process may run on.
std::map<int, std::vector<int>> own_cores();

/// Returns the number of threads of a rank, at least 1: its cores, divided by the number of ranks
/// of its node that may run on some of them. `cores[i]` holds the cores of the node's rank i.
int threads_of_rank(int local_rank, std::span<const std::vector<int>> cores);

/// Returns a warning if the ranks of a node together have more threads than cores; "" if not, or if
/// the cores are unknown.
std::string shared_cores_warning(std::span<const std::vector<int>> cores, int threads);

/// Returns the number that the user asked for: by --kokkos-num-threads, KOKKOS_NUM_THREADS, or the
/// first level of OMP_NUM_THREADS, in this order. Ignores an OMP_NUM_THREADS that is not a number,
/// because OpenMP warns about it. Throws like asked_number().
std::optional<AskedNumber> asked_threads(const std::vector<std::string>& arguments,
                                         const Environment& environment);

/// Throws ConfigError if `asked` is more than the number of processors of this rank, or more than 1
/// if Kokkos was built without threads.
void check_threads(const AskedNumber& asked, std::span<const int> processors,
                   bool kokkos_has_threads);

/// Returns whether threads may be bound to cores: there are several, as many as this rank has
/// cores, no other rank of the node may run on one of these cores, and the user has set no variable
/// that binds threads.
bool should_bind_threads(const Environment& environment, int local_rank,
                         std::span<const std::vector<int>> cores, int threads);

/// Binds each thread of OpenMP, the calling one included, to one core of this process.
///
/// If another process is busy on a core, threads that are not bound crowd on the other cores and
/// spin there in barriers, while the thread for which they wait has none.
void bind_threads();

}  // namespace tessera
