// SPDX-License-Identifier: Apache-2.0
#include <tessera/tensor/global_index.hpp>

namespace tessera {

GlobalIndex::GlobalIndex(const Shape& global_shape, const Piece& piece) {
  const std::size_t pad = max_tensor_rank - global_shape.size();
  Size running = 1;
  for (std::size_t d = max_tensor_rank; d-- > 0;) {
    extent[d] = d < pad ? 1 : piece.extent[d - pad];
    offset[d] = d < pad ? 0 : piece.offset[d - pad];
    stride[d] = running;
    running *= d < pad ? 1 : global_shape[d - pad];
  }
}

}  // namespace tessera
