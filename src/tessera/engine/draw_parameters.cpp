// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <tessera/base/alias.hpp>
#include <tessera/engine/draw_parameters.hpp>
#include <tessera/random/fill.hpp>
#include <tessera/random/threefry.hpp>

namespace tessera {

template <class T>
void draw_parameters(const Plan& plan, Size rank, const ParameterArena<T>& parameters) {
  const ModelSpec& model = plan.input.model;
  const StatePlan state = plan.state(rank);
  const Size coordinate = plan.local_rows(rank).model_coordinate;
  for (Size l = 0; l < plan.layouts.size(); ++l) {
    const LinearSpec& layer = model.layers[l];
    const Block block = plan.layouts.kernel_block(model, l, coordinate);
    const Size kernel = block.extent[0] * block.extent[1];
    const UnitPlan& unit = state.units[l];
    const bool sharded = state.sharding.parameters;
    const Vector<T> kept = sharded ? parameters.share(l) : parameters.unit(l);
    // The kernel stands before the bias: a share may begin behind it, or end before its end.
    const Size first = sharded ? unit.share.begin : 0;
    const Size count = std::min(kernel, first + static_cast<Size>(kept.extent(0))) - first;
    if (count <= 0) continue;
    const Key stream = fold_in(key(model.seed), static_cast<std::uint32_t>(2 * l));
    const GlobalBlock where{block.offset[0], block.offset[1], layer.out};
    initialize_run(alias_vector(kept.data(), count), model.initializer, stream,
                   BlockRun{where, block.extent[1], first}, layer.in, layer.out);
  }
}

template void draw_parameters<float>(const Plan&, Size, const ParameterArena<float>&);
template void draw_parameters<double>(const Plan&, Size, const ParameterArena<double>&);

}  // namespace tessera
