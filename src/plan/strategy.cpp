// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <tessera/plan/strategy.hpp>

namespace tessera {
namespace {

constexpr std::array<StrategyRow, 1> kStrategies{{
    {Strategy::data, "data", "parameters replicated, gradients all-reduced"},
}};

}  // namespace

std::span<const StrategyRow> strategies() { return kStrategies; }

std::string_view name_of(Strategy strategy) {
  for (const StrategyRow& row : kStrategies)
    if (row.strategy == strategy) return row.name;
  return "unknown";
}

std::vector<std::string> batch_axes(const MeshShape& mesh) {
  std::vector<std::string> axes;
  for (const Axis& axis : mesh.axes())
    if (axis.name == "data") axes.push_back(axis.name);
  return axes;
}

}  // namespace tessera
