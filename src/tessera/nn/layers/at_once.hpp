// SPDX-License-Identifier: Apache-2.0
// How many small matrices of one shape a layer multiplies at once.
#pragma once

#include <algorithm>

#include <tessera/base/for_each.hpp>
#include <tessera/nn/layers/layer_spec.hpp>

namespace tessera::detail {

/// LayerSpec::room if it is not set: the second cache of a core has room for a few matrices, and a
/// GPU needs many small products.
inline constexpr Size default_room = on_host ? 1 << 15 : 1 << 24;

/// Returns how many of `count` samples, heads or modes, each with a matrix of so many elements in
/// scratch memory, a layer with this LayerSpec::room takes at once.
inline Size at_once(Size room, Size count, Size elements) {
  const Size all = (room > 0 ? room : default_room) / std::max<Size>(1, elements);
  return std::max<Size>(1, std::min(count, all));
}

/// Returns the products of one launch (GemmShape::at_once) if a layer takes so many.
inline Size of_one_launch(Size products) { return on_host ? 1 : products; }

}  // namespace tessera::detail
