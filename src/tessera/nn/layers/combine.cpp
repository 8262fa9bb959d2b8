// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include <tessera/nn/layers/expert_slots.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

// Made once: launches allocate no memory for labels.
const std::string combine_forward_label = "tessera::combine";
const std::string combine_slots_label = "tessera::combine_slot_gradients";
const std::string combine_gates_label = "tessera::combine_gate_gradients";

template <class T>
void combine_forward(const LayerCall<T>& call) {
  call.with_output([&](const auto& y) {
    detail::sum_slots<T>(combine_forward_label, detail::slots_of(call), call.inputs[0],
                         call.inputs[1].data(), y);
  });
}

/// dgate = x dy for the experts of a row, and 0 for the others.
template <class T, class G>
struct GateGradients {
  const T *x, *dy;
  G* dgates;
  detail::ExpertSlots slots;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    using Math = StateOf<T>;
    const Size row = team.league_rank(), width = slots.width;
    const T* const above = dy + row * width;
    G* const to = dgates + row * slots.experts;
    const auto places = slots.of(row);
    detail::for_each_lane(Kokkos::TeamVectorRange(team, slots.experts), slots.experts,
                          [=](Size e) { to[e] = Math(0); });
    team.team_barrier();
    for (Size i = 0; i < places.count; ++i) {
      const T* const from = x + places.begin[i];
      const Math product = detail::reduce_lanes<Kokkos::Sum, Math>(
          team, width, [=](Size j) { return static_cast<Math>(from[j]) * above[j]; });
      Kokkos::single(Kokkos::PerTeam(team), [=] { to[places.expert[i]] = product; });
    }
  }
};

/// dx = gate dy in the slots of a row.
template <class T>
void combine_backward(const LayerCall<T>& call) {
  const auto slots = detail::slots_of(call);
  call.with_input_gradient(0, [&](const auto& dx) {
    detail::fill_slots<T>(combine_slots_label, slots, call.output_gradient, call.inputs[1].data(),
                          dx);
  });
  call.with_input_gradient(1, [&](const auto& dgates) {
    using G = typename std::decay_t<decltype(dgates)>::value_type;
    for_each_row(combine_gates_label, dgates.extent(0), slots.width,
                 GateGradients<T, G>{call.inputs[0].data(), call.output_gradient.data(),
                                     dgates.data(), slots});
  });
}

constexpr LayerRow combine_row{
    .name = "combine",
    .expression = {.inputs = {{"sk,ec"}, {.indices = "st,f", .gradient = "sp,f"}},
                   .output = "sp,c",
                   .whole = "tkf"},
    // Backward makes gradients of slots and, with two sums, of gates.
    .functions =
        [](const LayerSpec& layer, Size samples) {
          return detail::slots_functions(layer, samples, {1, 4});
        },
    .scratch = detail::slots_scratch,
    .reads_inputs = always,
    .forward = [](const auto& call) { combine_forward(call); },
    .backward = [](const auto& call) { combine_backward(call); }};

}  // namespace

LayerSpec combine(std::string name, std::string unit, Size slots, Size gates, Size width,
                  Size positions, const Routing& routing) {
  return {&combine_row,
          std::move(name),
          std::move(unit),
          {slots, gates},
          detail::slot_sizes(width, positions, routing)};
}

}  // namespace tessera
