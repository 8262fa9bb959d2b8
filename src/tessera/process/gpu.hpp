// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>

#include <tessera/base/types.hpp>
#include <tessera/process/kokkos_start.hpp>

namespace tessera {

/// GPU of a rank: the one that the user asked for, else its rank within the node modulo the devices
/// that it sees. Error (usage) if it does not see that one, or none.
int device_of_rank(int local_rank, int visible_devices, const std::optional<AskedNumber>& asked);

/// `devices[i]` identifies the GPU of the node's rank i. What is wrong if two ranks have the same.
std::optional<std::string> shared_device_error(std::span<const std::string> devices);

/// How many ranks share the GPU that most of them share; `devices[i]` identifies that of rank i.
Size ranks_per_gpu(std::span<const std::string> devices);

/// GPUs that this process sees; none when built without CUDA.
std::optional<int> visible_devices();

/// What tells physical devices (and slices of them) apart on a node; "" when built without CUDA.
std::string device_identity(int device);

/// From here on the calling thread uses the GPU that Kokkos has; nothing when built without CUDA.
/// A new thread uses the first one.
void use_own_gpu();

/// Its name, "" when built without CUDA.
std::string device_name(int device);

}  // namespace tessera
