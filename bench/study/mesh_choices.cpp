// SPDX-License-Identifier: Apache-2.0
#include "study/mesh_choices.hpp"

#include <array>

#include <tessera/plan/strategy.hpp>

namespace tessera::bench {
namespace {

/// Appends to `found` every completion of `sizes`, which hold the axes so far.
void factorise(Size left, std::size_t axes, std::vector<Size>& sizes,
               std::vector<std::vector<Size>>& found) {
  if (sizes.size() + 1 == axes) {
    sizes.push_back(left);
    found.push_back(sizes);
    sizes.pop_back();
    return;
  }
  for (Size size = left; size >= 1; --size) {
    if (left % size != 0) continue;
    sizes.push_back(size);
    factorise(left / size, axes, sizes, found);
    sizes.pop_back();
  }
}

Size largest_divisor_up_to_root(Size n) {
  Size best = 1;
  for (Size d = 1; d * d <= n; ++d)
    if (n % d == 0) best = d;
  return best;
}

}  // namespace

MeshShape usual_mesh(const std::string& strategy, Size ranks) {
  std::array<std::string_view, 2> axes{"data"};
  for (const StrategyRow& row : strategies)
    if (row.name == strategy) axes = row.usual_axes;
  if (axes[1].empty()) return MeshShape({{std::string(axes[0]), ranks}});
  const Size first = largest_divisor_up_to_root(ranks);
  return MeshShape({{std::string(axes[0]), first}, {std::string(axes[1]), ranks / first}});
}

std::vector<MeshShape> factorisations(Size ranks, const std::vector<std::string>& axes) {
  std::vector<std::vector<Size>> all;
  std::vector<Size> sizes;
  factorise(ranks, axes.size(), sizes, all);
  std::vector<MeshShape> meshes;
  for (const std::vector<Size>& found : all) {
    std::vector<Axis> shape;
    for (std::size_t a = 0; a < axes.size(); ++a)
      if (found[a] > 1) shape.push_back({axes[a], found[a]});
    if (shape.empty()) shape.push_back({axes.front(), 1});
    meshes.emplace_back(shape);
  }
  return meshes;
}

}  // namespace tessera::bench
