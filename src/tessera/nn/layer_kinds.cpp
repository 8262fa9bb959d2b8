// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>

#include <tessera/nn/add.hpp>
#include <tessera/nn/layer_kinds.hpp>
#include <tessera/nn/layer_norm.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/pointwise.hpp>

namespace tessera {

const LayerRow& row_of(LayerKind kind) {
  static const std::array<LayerRow, 4> rows{linear_row(), pointwise_row(), layer_norm_row(),
                                            add_row()};
  return rows.at(static_cast<std::size_t>(kind));
}

}  // namespace tessera
