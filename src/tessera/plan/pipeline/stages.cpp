// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/plan/pipeline/stages.hpp>

namespace tessera {
namespace {

/// The limit of layers times microbatches in the schedule of a pipeline, which lists each.
constexpr Size most_passes = 250'000;

/// Splits units into `parts` runs so that the run with the most FLOPs has as few as possible, by
/// dynamic programming. Returns the first unit of each run. best[k][n] is the FLOPs of that run if
/// the first n units are split into k runs.
std::vector<std::size_t> split_by_flops(const std::vector<double>& flops, std::size_t parts) {
  const std::size_t n = flops.size();
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(parts + 1, std::vector<double>(n + 1, never));
  std::vector<std::vector<std::size_t>> begin(parts + 1, std::vector<std::size_t>(n + 1, 0));
  best[0][0] = 0;
  for (std::size_t part = 1; part <= parts; ++part)
    for (std::size_t end = part; end <= n; ++end) {
      double own = 0;
      for (std::size_t first = end; first-- >= part;) {
        own += flops[first];
        const double busiest = std::max(best[part - 1][first], own);
        if (busiest >= best[part][end]) continue;
        best[part][end] = busiest;
        begin[part][end] = first;
      }
    }
  std::vector<std::size_t> firsts(parts);
  for (std::size_t part = parts, end = n; part > 0; --part)
    firsts[part - 1] = end = begin[part][end];
  return firsts;
}

}  // namespace

std::vector<Range> units_of(const std::vector<LayerSpec>& layers) {
  std::vector<Range> units;
  std::string last;  // unit of the last layer with parameters
  for (Size l = 0; l < static_cast<Size>(layers.size()); ++l) {
    const LayerSpec& layer = layers[l];
    const bool begins =
        units.empty() || (!layer.parameters.empty() && layer.unit != last && !last.empty());
    if (begins) units.push_back({l, 0});
    if (!layer.parameters.empty()) last = layer.unit;
    ++units.back().count;
  }
  return units;
}

std::vector<std::vector<Range>> split_into_stages(const PlanInput& input) {
  const std::vector<LayerSpec>& layers = input.model.layers;
  const PipelineShape shape = input.pipeline();
  check_shape(shape);
  const std::vector<Range> units = units_of(layers);
  const Size n = static_cast<Size>(units.size());
  if (shape.virtual_stages > n / shape.stages)
    throw ConfigError(
        shape.virtual_stages > 1 ? "distributed.virtual_stages" : "mesh axis pipeline",
        std::to_string(shape.virtual_stages > 1 ? shape.virtual_stages : shape.stages),
        "{} pipeline stages{} need a layer with parameters each, but the model has {}",
        shape.stages,
        shape.virtual_stages > 1 ? fmt::format(" of {} chunks", shape.virtual_stages) : "", n);
  if (input.has_stages() && shape.microbatches > most_passes / static_cast<Size>(layers.size()))
    throw ConfigError(
        "training.microbatches", std::to_string(shape.microbatches),
        "must be at most {}, because a pipeline's schedule lists each of the {} layers "
        "for each microbatch",
        most_passes / static_cast<Size>(layers.size()), layers.size());
  const Size parts = shape.stages * shape.virtual_stages;
  std::vector<Size> firsts;  // first unit of each part
  if (input.stage_balance == StageBalance::layers) {
    for (Size part = 0; part < parts; ++part)
      firsts.push_back(balanced_split(n, parts, part).begin);
  } else {
    std::vector<double> flops;
    for (const Range& unit : units)
      flops.push_back(
          count_flops({layers.begin() + unit.begin, layers.begin() + unit.end()}, input.batch_size)
              .total());
    for (const std::size_t first : split_by_flops(flops, static_cast<std::size_t>(parts)))
      firsts.push_back(static_cast<Size>(first));
  }
  std::vector<std::vector<Range>> stages(shape.stages);
  for (Size part = 0; part < parts; ++part) {
    const Size begin = units[firsts[part]].begin;
    const Size end =
        part + 1 < parts ? units[firsts[part + 1]].begin : static_cast<Size>(layers.size());
    stages[part % shape.stages].push_back({begin, end - begin});
  }
  return stages;
}

}  // namespace tessera
