// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <Kokkos_Macros.hpp>

#include <tessera/base/names.hpp>
#include <tessera/base/types.hpp>

namespace tessera {

/// The kind of processor that executes kernels.
enum class Device : std::uint8_t { cpu, gpu };

template <>
inline constexpr std::array<std::string_view, 2> names_of<Device>{"cpu", "gpu"};

/// The device of Kokkos' default execution space in this program, for plans, which know no Views.
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || defined(KOKKOS_ENABLE_SYCL)
inline constexpr Device this_device = Device::gpu;
#else
inline constexpr Device this_device = Device::cpu;
#endif

/// Returns the threads of a host that share a kernel: 1 on a device, and before Kokkos has started.
Size kernel_threads();

}  // namespace tessera
