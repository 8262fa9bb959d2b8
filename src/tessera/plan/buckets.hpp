// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/nn/model_spec.hpp>

namespace tessera {

/// A run of consecutive layers whose gradients are reduced in one call.
struct Bucket {
  Size first_layer = 0;
  Size last_layer = 0;  ///< inclusive
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

/// Greedy buckets in gradient-ready order, the last layer first: a unit joins the open bucket while
/// the bucket stays within `bucket_bytes`; a unit above the cap stands alone. The buckets cover
/// every parameter once, whatever the cap. `model`: as the ranks with the largest parts hold it, so
/// that all ranks have the same buckets.
std::vector<Bucket> make_buckets(const ModelSpec& model, Size element_bytes, Size bucket_bytes);

/// Every layer by itself, the last one first.
std::vector<Bucket> one_bucket_per_layer(const ModelSpec& model);

}  // namespace tessera
