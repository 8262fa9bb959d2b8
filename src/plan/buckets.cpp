// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/buckets.hpp>

namespace tessera {

std::vector<Bucket> make_buckets(const ModelSpec& model, Size element_bytes, Size bucket_bytes) {
  std::vector<Bucket> buckets;
  for (Size layer = static_cast<Size>(model.layers.size()) - 1; layer >= 0; --layer) {
    const Range unit{model.unit_offset(layer), model.unit_elements(layer)};
    const bool fits = !buckets.empty() &&
                      (buckets.back().elements.count + unit.count) * element_bytes <= bucket_bytes;
    if (!fits) {
      buckets.push_back({layer, layer, unit});
      continue;
    }
    // Units lie in layer order and become ready from the back: a bucket grows at its front.
    Bucket& open = buckets.back();
    open.first_layer = layer;
    open.elements = {unit.begin, open.elements.count + unit.count};
  }
  return buckets;
}

}  // namespace tessera
