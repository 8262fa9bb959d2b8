// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/layout/strategy.hpp>
#include <tessera/plan/strategy_options.hpp>
#include <tessera/tensor/mesh_axes.hpp>

namespace tessera {
namespace {

/// Returns the divisors, ascending.
std::vector<Size> divisors_of(Size n) {
  std::vector<Size> divisors;
  for (Size d = 1; d * d <= n; ++d)
    if (n % d == 0) divisors.push_back(d);
  for (auto i = divisors.size(); i-- > 0;)
    if (n / divisors[i] > divisors.back()) divisors.push_back(n / divisors[i]);
  return divisors;
}

}  // namespace

AxisSet batch_axes(const MeshShape& mesh) {
  return axes_where(mesh, [](const AxisRow& row) { return row.splits("batch"); });
}

AxisSet replicating_axes(const MeshShape& mesh) {
  return axes_where(mesh, [](const AxisRow& row) { return row.repeats_parameters; });
}

AxisSet shard_axes(Strategy strategy, const MeshShape& mesh) {
  const StrategyRow& row = row_of(strategy);
  if (!row.shards.moments) return {};
  return row.over_fsdp_only ? mesh.axes_named({"fsdp"}) : batch_axes(mesh);
}

AxisSet moment_axes(const StrategyOptions& options, const MeshShape& mesh) {
  return options.shard_moments_over.empty() ? shard_axes(options.strategy, mesh) : batch_axes(mesh);
}

AxisSet state_axes(const StrategyOptions& options, const MeshShape& mesh) {
  const auto splits_parameters = [](const AxisRow& row) {
    return !row.repeats_parameters || row.splits("experts");
  };
  return moment_axes(options, mesh) | axes_where(mesh, splits_parameters);
}

AxisSet loss_axes(const MeshShape& mesh) {
  return replicating_axes(mesh) | mesh.axes_named({"pipeline"});
}

Sharding sharding_on(Strategy strategy, const MeshShape& mesh) {
  return mesh.group_size(shard_axes(strategy, mesh)) > 1 ? row_of(strategy).shards : Sharding{};
}

MeshShape usual_mesh(const std::string& strategy, const Topology& topology) {
  const Size ranks = topology.ranks();
  std::array<std::string_view, 2> axes{"data"};
  for (const StrategyRow& row : strategies)
    if (row.name == strategy) axes = row.usual_axes;
  if (axes[1].empty()) return MeshShape({{std::string(axes[0]), ranks}});
  const std::vector<Size> divisors = divisors_of(ranks);
  Size first = divisors[(divisors.size() - 1) / 2];  // the largest up to the square root
  if (topology.num_nodes() > 1 && topology.per_node()) first = topology.num_nodes();
  return MeshShape({{std::string(axes[0]), first}, {std::string(axes[1]), ranks / first}});
}

/// Distributes the prime factors over the axes. A prime with exponent n can be distributed in
/// binomial(n + axes - 1, n) ways.
double most_factorisations(Size ranks, std::size_t axes) {
  double ways = 1;
  for (Size prime = 2; ranks > 1; ++prime) {
    if (prime * prime > ranks) prime = ranks;
    for (double n = 1; ranks % prime == 0; ranks /= prime, ++n)
      ways *= (n + static_cast<double>(axes) - 1) / n;
  }
  return ways;
}

std::vector<MeshShape> factorisations(Size ranks, const std::vector<std::string>& axes) {
  if (axes.size() == 1 || ranks == 1) return {MeshShape({{axes.front(), ranks}})};
  std::vector<MeshShape> meshes;
  const std::vector<Size> divisors = divisors_of(ranks);
  for (auto at = divisors.rbegin(); at != divisors.rend(); ++at) {
    const Size size = *at;
    if (size == ranks) {
      meshes.push_back(MeshShape({{axes.front(), ranks}}));
      continue;
    }
    for (const MeshShape& rest : factorisations(ranks / size, {axes.begin() + 1, axes.end()})) {
      std::vector<Axis> shape = rest.axes();
      if (size > 1) shape.insert(shape.begin(), {axes.front(), size});
      meshes.emplace_back(std::move(shape));
    }
  }
  return meshes;
}

}  // namespace tessera
