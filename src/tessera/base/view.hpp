// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include <tessera/base/half_float.hpp>

namespace tessera {

using ExecSpace = Kokkos::DefaultExecutionSpace;
using MemSpace = ExecSpace::memory_space;

/// A device vector, shape (n).
template <class T>
using Vector = Kokkos::View<T*, Kokkos::LayoutRight, MemSpace>;

/// A row-major device matrix, shape (rows, cols). It owns its memory if it is made from a label,
/// and aliases memory of the caller, such as a flat arena, if it is made from a pointer.
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, MemSpace>;

}  // namespace tessera
