// SPDX-License-Identifier: Apache-2.0
// The blocks of scores that attention multiplies.
#pragma once

#include <algorithm>

#include <tessera/base/view.hpp>
#include <tessera/nn/layers/shared_rows.hpp>

namespace tessera::detail {

inline Size heads_of(const LayerSpec& layer) { return layer.size("hu"); }
inline Size positions_of(const LayerSpec& layer) { return layer.total('p'); }
inline Size query_rows(const LayerSpec& layer) {
  return std::min(layer.tiling.queries, positions_of(layer));
}
/// Returns the elements of a block of scores.
inline Size square_size(const LayerSpec& layer) {
  return query_rows(layer) * std::min(layer.tiling.keys, positions_of(layer));
}

/// Some heads of one sample or, of more samples than there are heads, one head of some samples.
struct HeadGroup {
  Size sample, head;  ///< the first
  Size count;
  bool of_samples;

  /// Returns the elements from one head to the next in a matrix with so many columns for each.
  template <class E>
  Size next(const Matrix<E>& of, const SampleRows& rows, Size columns) const {
    return of_samples ? rows.next * static_cast<Size>(of.stride_0()) : columns;
  }
};

/// The products that an attention layer makes at once: those of heads of one sample or, of more
/// samples than there are heads, of one head of several samples. Of heads that share keys, all with
/// one key, and no others.
struct AttentionBatches {
  Size heads;
  bool of_samples;
  Size all;  ///< heads or samples that may be multiplied at once
  Size at_once;
  Size steps;   ///< to multiply all
  Size groups;  ///< of heads or samples that are multiplied at once, of the whole layer
  Size places;  ///< of groups in scratch memory

  AttentionBatches(const LayerSpec& layer, Size samples)
      : heads(heads_of(layer)),
        of_samples(layer.size("u") == 1 && samples > heads),
        all(layer.size("u") > 1 ? layer.size("u") : std::max<Size>({1, heads, samples})),
        at_once(layer.size("u") > 1 ? all : layer.tiling.at_once(all, square_size(layer))) {
    // Each thread has samples of its own.
    if (of_samples && layer.tiling.threads > 0)
      at_once = std::min(at_once, (all + layer.tiling.threads - 1) / layer.tiling.threads);
    steps = (all + at_once - 1) / at_once;
    groups = samples * heads / all * steps;
    places = layer.tiling.places(groups);
  }

  /// Returns a group, sample after sample: threads share rows, as those of other layers do.
  HeadGroup group(Size number) const {
    if (of_samples) {
      const Size begin = number / heads * at_once;
      return {begin, number % heads, std::min(at_once, all - begin), true};
    }
    const Size of_sample = heads / all * steps, rest = number % of_sample,
               begin = rest % steps * at_once;
    return {number / of_sample, rest / steps * all + begin, std::min(at_once, all - begin), false};
  }
};

/// The rows of the queries and of the keys of an attention layer.
struct AttentionRows {
  SharedRows queries, keys;
  Size query_block, key_block;  ///< positions of a block

  /// `keys_of`: the part of the share whose keys are there; -1: all that the layer reads.
  AttentionRows(const LayerSpec& layer, Size samples, Size keys_of = -1)
      : queries(layer, layer.positions(), samples),
        keys(queries),
        query_block(layer.tiling.queries),
        key_block(layer.tiling.keys) {
    if (layer.inputs.size() > 1)
      keys.parts = keys_of < 0 ? Range{0, keys.share.parts} : Range{keys_of, 1};
  }
};

/// A block of scores of a sample. Blocks without a visible key are left out, and so are the keys
/// behind the last visible one.
struct AttentionBlock {
  SampleRows queries, keys;
  Size seen;      ///< keys of the block that the first query sees; each next one sees one more
  bool is_first;  ///< the first block of these queries
};

/// Calls f(block) for the blocks of a sample, finish(queries) after the last block of some queries,
/// and complete(b) after the b-th block of the queries' rows (SharedRows::blocks). In a run, the
/// last queries come first: with one run, their blocks have all keys.
template <class F, class Finish, class Complete>
void for_each_block(const AttentionRows& rows, Size sample, const F& f, const Finish& finish,
                    const Complete& complete) {
  for (Size n = 0; n < rows.queries.runs(); ++n) {
    const Size b = n / 2;
    const SampleRows run = rows.queries.run(sample, n % 2 == 0 ? rows.queries.runs() - 1 - b : b);
    for (Size end = run.count, begin = 0; end > 0; end = begin) {
      begin = (end - 1) / rows.query_block * rows.query_block;
      const SampleRows queries = run.some(begin, end - begin);
      bool is_first = true;
      for (Size j = 0; j < rows.keys.runs(); ++j) {
        const SampleRows keys = rows.keys.run(sample, j);
        const Size seen = queries.position + 1 - keys.position,  // by the first query
            visible = std::min(keys.count, seen + queries.count - 1);
        for (Size k = 0; k < visible; k += rows.key_block, is_first = false)
          f(AttentionBlock{queries, keys.some(k, std::min(rows.key_block, visible - k)), seen - k,
                           is_first});
      }
      finish(queries);
    }
    if (n % 2 == 1) complete(b);
  }
}

}  // namespace tessera::detail
