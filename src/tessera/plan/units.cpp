// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/plan/units.hpp>

namespace tessera {
namespace {

/// Elements of 64 bytes and more: products want their operands aligned.
constexpr Size alignment = 16;
Size aligned(Size elements) { return (elements + alignment - 1) / alignment * alignment; }

/// Puts units in turn at the begin and at the end of one buffer; returns its size, the largest two
/// neighbours together.
Size alternate_ends(std::vector<UnitPlan>& units, Size UnitPlan::*begin) {
  Size size = aligned(units.front().whole.count);
  for (std::size_t u = 0; u + 1 < units.size(); ++u)
    size = std::max(size, aligned(units[u].whole.count) + aligned(units[u + 1].whole.count));
  for (std::size_t u = 0; u < units.size(); ++u)
    units[u].*begin = u % 2 == 0 ? 0 : size - aligned(units[u].whole.count);
  return size;
}

/// Every unit at the begin: one lives at a time.
Size one_at_a_time(const std::vector<UnitPlan>& units) {
  Size size = 0;
  for (const UnitPlan& unit : units) size = std::max(size, aligned(unit.whole.count));
  return size;
}

Size all_at_once(std::vector<UnitPlan>& units, Size UnitPlan::*begin) {
  Size size = 0;
  for (UnitPlan& unit : units) {
    unit.*begin = size;
    size += aligned(unit.whole.count);
  }
  return size;
}

}  // namespace

Range StatePlan::gradient(Size unit) const {
  const UnitPlan& u = units[unit];
  return sharding.gradients ? Range{u.share_begin, u.share.count} : u.whole;
}

StatePlan plan_state(const PlanInput& input, const ModelSpec& local, Size shards, Size shard) {
  StatePlan state;
  state.sharding = sharding_on(input.strategy, input.mesh);
  Size largest_share = 0;
  for (const LinearSpec& layer : local.layers) {
    UnitPlan unit;
    unit.whole = {state.whole, layer.num_parameters()};
    unit.share = balanced_split(unit.whole.count, shards, shard);
    unit.share_begin = state.shares;
    state.whole += unit.whole.count;
    state.shares += unit.share.count;
    largest_share = std::max(largest_share, unit.share.count);
    state.units.push_back(unit);
  }
  if (state.sharding.parameters) {
    state.gathered = !input.reshard_after_forward
                         ? all_at_once(state.units, &UnitPlan::gathered_begin)
                     : input.prefetch ? alternate_ends(state.units, &UnitPlan::gathered_begin)
                                      : one_at_a_time(state.units);
  }
  if (state.sharding.gradients) {
    state.unit_gradients = input.overlap ? alternate_ends(state.units, &UnitPlan::gradient_begin)
                                         : one_at_a_time(state.units);
    if (input.microbatches > 1) state.incoming = largest_share;
  }
  return state;
}

std::vector<Range> unique_gradients(const StatePlan& state, const ModelSpec& local,
                                    const std::vector<SplitAlongModel>& split,
                                    Size model_coordinate) {
  std::vector<Range> unique;
  const auto add = [&](const UnitPlan& unit, Size first_share, Range part) {
    const Range own = intersection(part, unit.share);
    if (own.count == 0) return;
    const Size at = first_share + own.begin;
    if (!unique.empty() && unique.back().end() == at)
      unique.back().count += own.count;
    else
      unique.push_back({at, own.count});
  };
  for (std::size_t u = 0; u < state.units.size(); ++u) {
    const UnitPlan& unit = state.units[u];
    // Where element 0 of the unit would lie in the buffer of gradients.
    const Size first =
        state.sharding.gradients ? unit.share_begin - unit.share.begin : unit.whole.begin;
    const Size kernel = local.layers[u].in * local.layers[u].out;
    if (model_coordinate == 0 || split[u].kernel) add(unit, first, {0, kernel});
    if (model_coordinate == 0 || split[u].bias)
      add(unit, first, {kernel, unit.whole.count - kernel});
  }
  return unique;
}

}  // namespace tessera
