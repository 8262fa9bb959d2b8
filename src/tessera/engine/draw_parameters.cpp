// SPDX-License-Identifier: Apache-2.0
#include <tessera/base/alias.hpp>
#include <tessera/engine/draw_parameters.hpp>
#include <tessera/random/threefry.hpp>

namespace tessera {

BlockRun run_of(const Shape& shape, const Piece& piece, Size first) {
  Size between = 1;
  for (std::size_t d = 1; d + 1 < shape.size(); ++d) between *= shape[d];
  const Size row = shape.size() > 1 ? piece.offset[0] * between : 0;
  return {row, piece.offset.back(), shape.back(), piece.extent.back(), first};
}

template <class T>
void draw_parameters(const Plan& plan, Size rank, const StateArena<T>& parameters, Held held) {
  const ModelSpec& model = plan.input.model;
  const StatePlan state = plan.state(rank);
  const ParameterLayout& layout = plan.stage(rank).parameters;
  for (const ParameterPlan& parameter : layout.parameters) {
    const ParameterSpec& spec = model.layers[parameter.layer].parameters[parameter.number];
    const Piece piece = plan.piece(rank, parameter);
    const Size bucket = parameter.bucket;
    const Range elements{parameter.place.begin, num_elements(piece.extent)};
    const Range kept = intersection(elements, state.buckets[bucket].part(held));
    if (kept.count == 0 || spec.initial == Initial::zeros) continue;
    const Vector<T> values = parameters.range(state.place_of(bucket, kept, held));
    const Key drawn = fold_in(key(model.seed), spec.stream);
    const BlockRun run = run_of(parameter.shape, piece, kept.begin - elements.begin);
    if (spec.initial == Initial::ones)
      Kokkos::deep_copy(values, T(1));
    else if (spec.initial == Initial::uniform)
      fill_uniform(values, uniform_limit(spec), drawn, run);
    else
      initialize(values, model.initializer, drawn, run, fan_in(parameter.shape),
                 parameter.shape.back());
  }
}

template void draw_parameters(const Plan&, Size, const StateArena<float>&, Held);
template void draw_parameters(const Plan&, Size, const StateArena<double>&, Held);
template void draw_parameters(const Plan&, Size, const StateArena<BFloat16>&, Held);
template void draw_parameters(const Plan&, Size, const StateArena<Float16>&, Held);

}  // namespace tessera
