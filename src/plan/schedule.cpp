// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/schedule.hpp>

namespace tessera {
namespace {

bool splits_batch(const MeshShape& mesh) {
  for (const std::string& axis : batch_axes(mesh))
    if (mesh.size_of(axis) > 1) return true;
  return false;
}

}  // namespace

std::vector<Action> make_schedule(const PlanInput& input, const std::vector<Bucket>& buckets) {
  const Size layers = static_cast<Size>(input.model.layers.size());
  const Size num_buckets = static_cast<Size>(buckets.size());
  const bool reduces = splits_batch(input.mesh);
  std::vector<Action> actions;

  for (Size m = 0; m < input.microbatches; ++m) {
    const bool last = m + 1 == input.microbatches;
    for (Size layer = 0; layer < layers; ++layer)
      actions.push_back({ActionKind::forward, layer, m});
    actions.push_back({ActionKind::loss, 0, m});
    Size next_bucket = 0;
    for (Size layer = layers - 1; layer >= 0; --layer) {
      actions.push_back({ActionKind::backward, layer, m});
      if (reduces && input.overlap && last && buckets[next_bucket].first_layer == layer)
        actions.push_back({ActionKind::start_reduce, next_bucket++, m});
    }
  }

  const Size last = input.microbatches - 1;
  const ActionKind kind = input.overlap ? ActionKind::finish_reduce : ActionKind::reduce;
  for (Size b = 0; reduces && b < num_buckets; ++b) actions.push_back({kind, b, last});
  if (input.clips_by_value || input.clips_by_norm) actions.push_back({ActionKind::clip, 0, last});
  actions.push_back({ActionKind::update, 0, last});
  return actions;
}

}  // namespace tessera
