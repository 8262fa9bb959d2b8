// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/plan/model_parts.hpp>

namespace tessera {

Size ModelParts::operator()(Size rank) {
  const Size stage = plan_.stage_number(rank), samples = plan_.rows(rank).count;
  const auto [at, is_new] = bounds_.try_emplace({stage, samples});
  if (is_new) at->second = bounds(plan_.stage(rank), samples);
  const std::vector<Size>& bounds = at->second;
  return std::upper_bound(bounds.begin(), bounds.end(), plan_.model_coordinate(rank)) -
         bounds.begin();
}

std::vector<Size> ModelParts::bounds(const StagePlan& stage, Size samples) const {
  const Size ranks = plan_.input.mesh.size_of("model"), passes = plan_.input.microbatches;
  std::vector<Size> all;
  const auto split = [&](const Shape& shape, Placement along) {
    if (along.is_shard()) all.push_back(shape[along.dim()] % ranks);
  };
  for (std::size_t l = 0; l < plan_.layouts.size(); ++l) {
    const LayerSpec& layer = plan_.input.model.layers[l];
    const Layout& layout = plan_.layouts[l];
    for (std::size_t p = 0; p < layer.parameters.size(); ++p)
      split(layer.parameters[p].shape, layout.parameters[p]);
    if (layout.inputs[0].is_shard(1)) split({0, layer.in}, layout.inputs[0]);
    if (layout.output.is_shard(1)) split({0, layer.out}, layout.output);
  }
  for (const Slot& slot : stage.slots)
    if (slot.parameter < 0)
      for (const Size pass : {Size{0}, passes - 1})  // which have most and fewest samples
        split({balanced_split(samples, passes, pass).count * slot.positions, slot.shape[1]},
              slot.along_model);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace tessera
