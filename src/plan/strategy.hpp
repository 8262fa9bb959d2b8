// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/mesh/mesh_shape.hpp>

namespace tessera {

/// How parameters, gradients and optimizer state lie on the axes that split the batch.
enum class Strategy : std::uint8_t {
  data,    ///< replicated; gradients are all-reduced (DDP)
  zero1,   ///< optimizer state is sharded over all batch axes
  zero2,   ///< and gradients
  fsdp,    ///< and parameters, which are gathered unit by unit (ZeRO-3)
  hybrid,  ///< fsdp over the axis `fsdp`, replicated over `data`
  tensor,  ///< data on a mesh whose batch axes have size 1
};

/// The names in the order of the enumerators.
inline constexpr std::array<std::string_view, 6> strategy_names{"data", "zero1",  "zero2",
                                                                "fsdp", "hybrid", "tensor"};

constexpr std::string_view name_of(Strategy strategy) {
  return strategy_names[static_cast<std::size_t>(strategy)];
}

/// The axes of `mesh` over which the batch is split, in mesh order.
std::vector<std::string> batch_axes(const MeshShape& mesh);

}  // namespace tessera
