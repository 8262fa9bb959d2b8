// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include <tessera/plan/action_text.hpp>
#include <tessera/plan/memory_timeline.hpp>
#include <tessera/plan/plan_document.hpp>

namespace tessera {
namespace {

using nlohmann::json;

/// The tensors of the frame that are alive, by storage and number among the listed microbatches. A
/// tensor that is written over another one takes its place.
using LiveTensors = std::map<std::pair<Size, Size>, SlotId>;

/// Returns the use of memory of which all but the frame has `others` bytes.
json use_of(const StagePlan& stage, const LiveTensors& tensors, Size others) {
  std::map<TensorRole, Size> bytes;
  Size all = 0, end = 0;
  for (const auto& [place, id] : tensors) {
    const Storage& storage = stage.storages[place.first];
    const Size begin = storage.place(place.second);
    bytes[stage.slots[id].role] += storage.bytes;
    all += storage.bytes;
    end = std::max(end, begin + storage.bytes);
  }
  return {{"activations", bytes[TensorRole::activation]},
          {"activation_gradients", bytes[TensorRole::gradient]},
          {"buffers", bytes[TensorRole::scratch]},
          {"in_use", others + all},
          {"reaches", others + allocated_bytes(end, 1)}};
}

/// Returns the tensors at a position of the list, the largest first.
json listed(const StagePlan& stage, const LiveTensors& tensors, Size now) {
  const Size left_out = now < stage.repeated.end() ? 0 : stage.repeated.left_out();
  json all = json::array();
  for (const auto& [place, id] : tensors)
    all.push_back({{"path", stage.slots[id].path},
                   {"role", name_of(stage.slots[id].role)},
                   {"microbatch", place.second + left_out},
                   {"bytes", stage.storages[place.first].bytes}});
  std::stable_sort(all.begin(), all.end(),
                   [](const json& a, const json& b) { return a["bytes"] > b["bytes"]; });
  return all;
}

}  // namespace

json memory_timeline(const Plan& plan, Size rank) {
  const StagePlan& stage = plan.stage(rank);
  const MemoryPlan memory = plan.memory(rank);
  json actions = json::array();
  LiveTensors tensors, at_peak;
  Size peak = 0, most = 0;
  for (Size now = 0; now < std::ssize(stage.actions); ++now) {
    const ListedAction& action = stage.actions[now];
    for_each_slot(action.action, [&](SlotId id) {
      if (stage.slots[id].in_frame())
        tensors[{stage.slots[id].storage, stage.repeated.listed(now, action.microbatch)}] = id;
    });
    json use = use_of(stage, tensors, memory.total() - memory.activations);
    if (use["in_use"] > most) peak = now, most = use["in_use"], at_peak = tensors;
    use["text"] = to_string(action, plan, stage);
    actions.push_back(std::move(use));
    std::erase_if(tensors, [&](const auto& held) {
      const std::vector<Range>& alive = stage.storages[held.first.first].alive;
      return alive[held.first.second].end() == now + 1;
    });
  }
  return {
      {"mesh", plan.input.mesh.to_string()},
      {"strategy", name_of(plan.input.strategy)},
      {"rank", rank},
      {"memory", memory_json(memory)},
      {"actions", std::move(actions)},
      {"peak", {{"action", peak}, {"in_use", most}, {"tensors", listed(stage, at_peak, peak)}}}};
}

}  // namespace tessera
