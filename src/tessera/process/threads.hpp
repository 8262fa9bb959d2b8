// SPDX-License-Identifier: Apache-2.0
// How many threads a rank's kernels use.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tessera/process/kokkos_start.hpp>

namespace tessera {

/// The processors of `processors` with one hardware thread of each core: the lowest. `siblings`
/// reads "0,4" or "0-1", the hardware threads of a processor's core; "" where that is not known.
std::vector<int> cores_of(std::span<const int> processors,
                          const std::function<std::string(int)>& siblings);

/// cores_of() what this process may run on.
std::vector<int> own_cores();

/// As many as the launcher has given a rank cores, which it shares evenly with the other ranks of
/// its node that may run there, and as its node's ranks have processors' worth of time between
/// them; at least 1. `cores[i]`: of the node's rank i, ascending.
int threads_of_rank(int local_rank, std::span<const std::vector<int>> cores,
                    std::optional<double> quota = {});

/// What the user asked for, in the order in which Kokkos asks: --kokkos-num-threads,
/// KOKKOS_NUM_THREADS, OMP_NUM_THREADS, of which the first level counts; none for one that is no
/// number, of which OpenMP warns. Throws like asked_number().
std::optional<AskedNumber> asked_threads(const std::vector<std::string>& arguments,
                                         const Environment& environment);

/// Throws Error (usage) if `asked` is more than a rank has processors, or more than one where
/// Kokkos has no threads.
void check_threads(const AskedNumber& asked, std::span<const int> processors,
                   bool kokkos_has_threads);

}  // namespace tessera
