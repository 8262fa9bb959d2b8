// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/buckets.hpp>

namespace tessera {

std::vector<Bucket> make_buckets(const ModelSpec& model, Size element_bytes, Size bucket_bytes) {
  std::vector<Bucket> buckets;
  Size bytes = 0;  // of the open bucket
  for (Size layer = static_cast<Size>(model.layers.size()) - 1; layer >= 0; --layer) {
    const Size unit = model.unit_elements(layer) * element_bytes;
    if (buckets.empty() || bytes + unit > bucket_bytes) {
      buckets.push_back({layer, layer});
      bytes = 0;
    }
    // Units become ready from the back: a bucket grows at its front.
    buckets.back().first_layer = layer;
    bytes += unit;
  }
  return buckets;
}

std::vector<Bucket> one_bucket_per_layer(const ModelSpec& model) {
  std::vector<Bucket> buckets;
  for (Size layer = static_cast<Size>(model.layers.size()) - 1; layer >= 0; --layer)
    buckets.push_back({layer, layer});
  return buckets;
}

}  // namespace tessera
