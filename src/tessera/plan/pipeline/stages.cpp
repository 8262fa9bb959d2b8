// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/plan/pipeline/stages.hpp>

namespace tessera {
namespace {

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

std::vector<Range> blocks_of(const std::vector<LayerSpec>& layers) {
  std::vector<Range> blocks;
  for (Size l = 0; l < static_cast<Size>(layers.size()); ++l) {
    const std::string_view name = block_of(layers[l]);
    if (std::isdigit(static_cast<unsigned char>(name.back())) == 0) continue;
    if (l == 0 || block_of(layers[l - 1]) != name) blocks.push_back({l, 0});
    ++blocks.back().count;
  }
  return blocks;
}

namespace {

/// Returns the first layer of each chunk if chunks have whole blocks: those of stage_layout, or
/// equally many. The first chunk also has the layers before the blocks, and the last one those
/// behind them; stage_layout may leave them without a block.
std::vector<Size> split_by_blocks(const PlanInput& input, Size parts) {
  const std::vector<Range> blocks = blocks_of(input.model.layers);
  const auto n = static_cast<Size>(blocks.size());
  std::vector<Size> counts = input.stage_layout;
  if (counts.empty())
    for (Size part = 0; part < parts; ++part)
      counts.push_back(balanced_split(n, parts, part).count);
  const bool may_lack = !input.stage_layout.empty() && n > 0 && blocks.front().begin > 0 &&
                        blocks.back().end() < static_cast<Size>(input.model.layers.size());
  std::vector<Size> firsts;
  Size before = 0;
  bool fits = std::ssize(counts) == parts && n > 0;
  for (std::size_t part = 0; part < counts.size() && fits; before += counts[part++]) {
    const bool is_end = part == 0 || part + 1 == counts.size();
    fits = counts[part] >= (is_end && may_lack ? 0 : 1) && counts[part] <= n - before;
    firsts.push_back(part == 0 ? 0 : before < n ? blocks[before].begin : blocks.back().end());
  }
  if (fits && before == n) return firsts;
  if (input.stage_layout.empty())
    throw ConfigError("distributed.stage_balance", "\"blocks\"",
                      "needs a block for each of {}, and the model has {}", counted(parts, "chunk"),
                      counted(n, "block"));
  throw ConfigError("distributed.stage_layout", fmt::format("[{}]", fmt::join(counts, ", ")),
                    "must have {} with sum {}, one for each chunk of layers, of at least 1{}",
                    counted(parts, "number"), n,
                    may_lack ? "; the first and the last may be 0" : "");
}

}  // namespace

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
  const Size parts = shape.stages * shape.virtual_stages;
  std::vector<Size> firsts;  // first layer of each part
  if (!input.stage_layout.empty() || input.stage_balance == StageBalance::blocks) {
    firsts = split_by_blocks(input, parts);
  } else if (input.stage_balance == StageBalance::layers) {
    for (Size part = 0; part < parts; ++part)
      firsts.push_back(units[balanced_split(n, parts, part).begin].begin);
  } else {
    std::vector<double> flops;
    for (const Range& unit : units)
      flops.push_back(
          count_flops({layers.begin() + unit.begin, layers.begin() + unit.end()}, input.batch_size)
              .total());
    for (const std::size_t first : split_by_flops(flops, static_cast<std::size_t>(parts)))
      firsts.push_back(units[first].begin);
  }
  std::vector<std::vector<Range>> stages(shape.stages);
  for (Size part = 0; part < parts; ++part) {
    const Size end = part + 1 < parts ? firsts[part + 1] : static_cast<Size>(layers.size());
    stages[stage_of(part, shape)].push_back({firsts[part], end - firsts[part]});
  }
  return stages;
}

}  // namespace tessera
