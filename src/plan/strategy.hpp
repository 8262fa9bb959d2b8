// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/mesh/mesh_shape.hpp>

namespace tessera {

/// How parameters, gradients and optimizer state lie on the axes that split the batch.
enum class Strategy {
  data,  ///< replicated; gradients are all-reduced (DDP)
};

/// One strategy's name and what the field says of it.
struct StrategyRow {
  Strategy strategy;
  std::string_view name;
  std::string_view meaning;
};

/// Every strategy that can run, in the order in which they are listed to users.
std::span<const StrategyRow> strategies();
std::string_view name_of(Strategy strategy);

/// The axes of `mesh` over which the batch is split, in mesh order.
std::vector<std::string> batch_axes(const MeshShape& mesh);

}  // namespace tessera
