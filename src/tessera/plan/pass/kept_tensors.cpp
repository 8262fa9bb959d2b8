// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/nn/layers/layer_kind.hpp>
#include <tessera/plan/pass/kept_tensors.hpp>
#include <tessera/plan/pipeline/stages.hpp>

namespace tessera::detail {
namespace {

using Layers = std::vector<LayerSpec>;

/// Returns the number of the segment of each layer; -1 outside the chunk.
std::vector<Size> segments_of(const Layers& layers, Range chunk, const Recomputation& asked) {
  std::vector<Size> segment_of(layers.size(), -1);
  Size number = 0;
  if (asked.what == Recomputed::block) {
    for (Size l = chunk.begin; l < chunk.end(); ++l) {
      if (l > chunk.begin && block_of(layers[l]) != block_of(layers[l - 1])) ++number;
      segment_of[l] = number;
    }
    return segment_of;
  }
  for (const Range& unit : units_of(layers)) {
    if (unit.begin < chunk.begin || unit.begin >= chunk.end()) continue;
    const Size segment = number++ / asked.units;
    for (Size l = unit.begin; l < unit.end(); ++l) segment_of[l] = segment;
  }
  return segment_of;
}

/// Keeps the tensors that one segment reads of another. The last segment of the model keeps all:
/// its values are read at once, so dropping them saves nothing.
std::vector<Kept> keep_ends(const Layers& layers, Range chunk,
                            const std::vector<Size>& segment_of) {
  std::vector<Kept> kept(layers.size(), Kept::all);
  const bool is_last = chunk.end() == static_cast<Size>(layers.size());
  for (Size l = chunk.begin; l < chunk.end(); ++l)
    if (!is_last || segment_of[l] != segment_of.back()) kept[l] = Kept::nothing;
  for (Size reader = chunk.begin; reader < chunk.end(); ++reader)
    for (const Size l : layers[reader].inputs)
      if (l >= chunk.begin && segment_of[l] != segment_of[reader]) kept[l] = Kept::output;
  return kept;
}

/// Returns the layers that are cheap to compute again: they have no sums, and the backward pass
/// reads their inputs anyway. Without their outputs it would else need the inputs instead, as
/// of the sum that ends a residual block or of an activation that overwrites its input.
std::vector<char> cheap_layers(const Layers& layers) {
  std::vector<char> is_there(layers.size(), false);  // the backward pass has the output
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const LayerKind& kind = *layers[l].kind;
    if (kind.reads_output(layers[l])) is_there[l] = true;
    for (const Size i : layers[l].inputs)
      if (i != LayerSpec::data && kind.reads_inputs(layers[l])) is_there[i] = true;
  }
  std::vector<char> cheap(layers.size(), false);
  for (std::size_t l = 0; l + 1 < layers.size(); ++l) {  // the loss reads the last output
    const std::vector<Size>& inputs = layers[l].inputs;
    cheap[l] = !has_sums(layers[l].kind->expression) &&
               std::all_of(inputs.begin(), inputs.end(),
                           [&](Size i) { return i == LayerSpec::data || is_there[i]; });
    if (cheap[l]) is_there[l] = true;
  }
  return cheap;
}

/// Keeps what layers of the last unit read: the backward pass reads it at once, and would gather
/// other parameters over those that the unit keeps gathered (StrategyOptions::keep_last_unit).
void keep_for_last_unit(const PlanInput& input, std::vector<char>& chosen) {
  const Layers& layers = input.model.layers;
  const auto last = std::find_if(layers.rbegin(), layers.rend(),
                                 [](const LayerSpec& layer) { return layer.uses_parameters(); });
  const auto in_last = [&](const LayerSpec& layer) {
    return layer.unit == last->unit ||
           (input.fsdp_unit == FsdpUnit::block && block_of(layer) == block_of(*last));
  };
  for (const LayerSpec& reader : layers)
    for (const Size l : reader.inputs)
      if (l != LayerSpec::data && in_last(reader)) chosen[l] = false;
}

std::vector<char> layers_of_attention(const Layers& layers) {
  std::vector<char> attention;
  for (const LayerSpec& layer : layers)
    attention.push_back(!layer.kind->expression.streamed.empty());
  return attention;
}

}  // namespace

std::vector<Kept> kept_tensors(const PlanInput& input, Range chunk) {
  const Layers& layers = input.model.layers;
  const Recomputation& asked = input.activation_checkpointing;
  std::vector<Kept> kept(layers.size(), Kept::all);
  if (asked == Recomputation{}) return kept;
  if (!chooses_kinds(asked)) return keep_ends(layers, chunk, segments_of(layers, chunk, asked));
  const bool is_cheap = asked.what == Recomputed::cheap;
  std::vector<char> chosen = is_cheap ? cheap_layers(layers) : layers_of_attention(layers);
  keep_for_last_unit(input, chosen);
  if (std::find(chosen.begin(), chosen.end(), true) == chosen.end())
    throw ConfigError("training.activation_checkpointing",
                      fmt::format("\"{}\"", name_of(asked.what)),
                      is_cheap ? "saves no memory in this model, unlike \"block\" and \"full\""
                               : "needs a model with attention");
  for (Size l = chunk.begin; l < chunk.end(); ++l)
    if (chosen[l]) kept[l] = Kept::nothing;
  return kept;
}

}  // namespace tessera::detail
