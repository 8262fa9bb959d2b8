// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <tessera/base/pair_tree.hpp>
#include <tessera/nn/layers/attention_blocks.hpp>
#include <tessera/nn/layers/attention_work.hpp>

namespace tessera::detail {

LayerProducts attention_products(const LayerSpec& layer, Size samples) {
  const Size d = layer.size("d"), heads = samples * heads_of(layer);
  const AttentionBatches batches(layer, samples);
  const Size launches = heads / batches.all * layer.tiling.launches(batches.all, batches.at_once);
  const Size key_launches = layer.size("u") > 1 ? heads : launches;
  LayerProducts products;
  const auto add = [](std::vector<GemmShape>& all, const GemmShape& one) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const GemmShape& other) {
      return other.m == one.m && other.n == one.n && other.k == one.k;
    });
    if (same == all.end()) return all.push_back(one);
    same->times += one.times;
    same->launches += one.launches;
  };
  const auto add_block = [&](const AttentionBlock& block) {
    const Size m = block.queries.count, n = block.keys.count;
    const GemmShape scores{m, n, d, heads, launches}, values{m, d, n, heads, launches},
        keys{n, d, m, 2 * heads, 2 * key_launches};
    for (const GemmShape& one : {scores, values}) {
      add(products.forward, one);
      add(products.backward, one);
    }
    add(products.backward, keys);
    add(products.repeated, scores);
  };
  for_each_block(
      AttentionRows(layer, 1), 0, add_block, [](Range) {}, [](Size) {});
  return products;
}

/// A score takes 4 FLOPs per column of a head in forward; backward repeats its exponential, and the
/// gradient takes as long. Rows of scores have a maximum and a sum, and backward one sum.
LayerFunctions attention_functions(const LayerSpec& layer) {
  double flops = 0, rows = 0;
  for (const GemmShape& product : attention_products(layer, 1).forward) {
    flops += product.flops();
    rows += static_cast<double>(product.m * product.times) / 2;  // there are two products
  }
  const double scores = flops / (4 * static_cast<double>(layer.size("d")));
  return {.exponentials = {scores, 2 * scores}, .row_sums = {2 * rows, rows}};
}

Size attention_scratch(const LayerSpec& layer, Size samples) {
  const Size keys = 1 + tree_levels(layer.share.blocks),
             sums = (2 * keys * positions_of(layer) + query_rows(layer)) * layer.size("d");
  const AttentionBatches batches(layer, samples);
  return batches.places * batches.at_once * (3 * square_size(layer) + sums);
}

}  // namespace tessera::detail
