// SPDX-License-Identifier: Apache-2.0
#include <tessera/tensor/transition.hpp>

namespace tessera {

Split split_of(const Shape& block, Placement shard, Size parts) {
  return {.units = block[static_cast<std::size_t>(shard.dim())],
          .parts = parts,
          .blocks = shard.blocks(),
          .filled = shard.filled(),
          .held = shard.held()};
}

Shape part_of(Shape block, Placement shard, Size parts, Size part) {
  block[static_cast<std::size_t>(shard.dim())] = split_of(block, shard, parts).count(part);
  return block;
}

bool has_contiguous_parts(const Shape& block, int dim) {
  return num_elements({block.begin(), block.begin() + dim}) <= 1;
}

Size packed_elements(Placement before, Placement after, const Shape& group, Size ranks, Size rank) {
  const auto cut = [](const Shape& block, int dim) {
    return has_contiguous_parts(block, dim) ? 0 : num_elements(block);
  };
  switch (transition(before, after)) {
    case Transition::reduce_scatter:
      return cut(group, after.dim());
    case Transition::all_gather:
      return cut(group, before.dim());
    case Transition::all_to_all:
      return cut(part_of(group, before, ranks, rank), after.dim()) +
             cut(part_of(group, after, ranks, rank), before.dim());
    case Transition::keep:
    case Transition::all_reduce:
    case Transition::slice:
      return 0;
  }
  return 0;
}

}  // namespace tessera
