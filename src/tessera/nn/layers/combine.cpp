// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <tessera/nn/layers/expert_slots.hpp>
#include <tessera/nn/layers/layers.hpp>

namespace tessera {
namespace {

template <class T>
void combine_forward(const LayerCall<T>& call) {
  call.with_output([&](const auto& y) {
    detail::sum_slots<T>("tessera::combine"_label, detail::slots_of(call), call.inputs[0],
                         call.inputs[1].data(), y);
  });
}

/// dgate = x dy for the experts of a row, and -0 for the others, which other ranks may add.
template <class T, class G>
void gate_gradients(const detail::ExpertSlots& slots, const Matrix<const T>& x,
                    const Matrix<const T>& dy, const Matrix<G>& dgates) {
  using Math = StateOf<T>;
  const Size width = slots.width;
  const T *const filled = x.data(), *const gradients = dy.data();
  G* const out = dgates.data();
  for_rows(
      "tessera::combine_gate_gradients"_label, dgates.extent(0), width,
      KOKKOS_LAMBDA(const Row& row) {
        const T* const above = gradients + row.number * width;
        G* const to = out + row.number * slots.experts;
        const auto places = slots.of(row.number);
        row.for_each(slots.experts, [=](Size e) { to[e] = Math(-0.0); });
        row.wait();
        for (Size i = 0; i < places.count; ++i) {
          const T* const from = filled + places.begin[i];
          const Math product =
              row.sum<Math>(width, [=](Size j) { return static_cast<Math>(from[j]) * above[j]; });
          row.once([=] { to[places.expert[i]] = product; });
        }
      });
}

/// dx = gate dy in the slots of a row.
template <class T>
void combine_backward(const LayerCall<T>& call) {
  const auto slots = detail::slots_of(call);
  call.with_input_gradient(0, [&](const auto& dx) {
    detail::fill_slots<T>("tessera::combine_slot_gradients"_label, slots, call.output_gradient,
                          call.inputs[1].data(), dx);
  });
  call.with_input_gradient(1, [&](const auto& dgates) {
    gate_gradients<T>(slots, call.inputs[0], call.output_gradient, dgates);
  });
}

constexpr LayerKind combine_kind{
    .name = "combine",
    .expression = {.inputs = {{"sk,ec"}, {.indices = "st,f", .gradient = "sp,f"}},
                   .output = "sp,c",
                   .whole = "tkf"},
    .functions =
        [](const LayerSpec& layer) {
          return detail::slots_functions(layer, {5, 11});
        },
    .scratch = detail::slots_scratch,
    .sums_in_blocks = true,
    .reads_inputs = always,
    .forward = [](const auto& call) { combine_forward(call); },
    .backward = [](const auto& call) { combine_backward(call); }};

}  // namespace

LayerSpec combine(std::string name, std::string unit, Size slots, Size gates, Size width,
                  Size positions, const Routing& routing) {
  return {&combine_kind,
          std::move(name),
          std::move(unit),
          {slots, gates},
          detail::slot_sizes(width, positions, routing)};
}

}  // namespace tessera
