// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include <tessera/base/short_float.hpp>

namespace tessera {

using ExecSpace = Kokkos::DefaultExecutionSpace;
using MemSpace = ExecSpace::memory_space;

/// Flat device memory, shape (n).
template <class T>
using Vector = Kokkos::View<T*, Kokkos::LayoutRight, MemSpace>;

/// Row-major device matrix, shape (rows, cols). Constructed from a pointer it aliases memory that
/// somebody else owns (a flat arena); constructed from a label it owns its own.
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, MemSpace>;

}  // namespace tessera
