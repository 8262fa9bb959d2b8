// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <tessera/plan/pass/passes.hpp>

namespace tessera {

PassPlan make_passes(const PlanInput& input, const std::vector<LayerPlacements>& placed,
                     const std::vector<Range>& chunks, const PlanPasses& passes) {
  detail::NaivePass naive(input, placed);
  for (const Range& layers : chunks) {
    naive.lower(layers);
    if (passes.split_weights && input.splits_backward())
      detail::split_weight_gradients(input, naive.chunk());
    detail::drop_tensors(input, naive, layers, passes.drop);
    if (passes.join) detail::join_gradients(input, naive.chunk(), naive.plan().slots);
    if (input.streams_model()) detail::stream_moves(input, placed, naive);
  }
  detail::assign_storages(input, naive, passes.share_memory);
  return std::move(naive.plan());
}

}  // namespace tessera
