// SPDX-License-Identifier: Apache-2.0
// The blocks of scores that attention multiplies.
#pragma once

#include <algorithm>
#include <vector>

#include <tessera/nn/layers/layer_spec.hpp>

namespace tessera::detail {

/// Rows of a sample.
struct SampleRows : Range {
  Size next;  ///< rows to those of the next sample
};

/// Rows of a matrix that are neighbouring positions of a sample.
struct PositionRun {
  Size first;   ///< row of the first position, of sample 0
  Size stride;  ///< rows from one sample to the next
  Size position, count;
  Size end() const { return position + count; }
  /// Returns `n` of the rows of a sample, from `from` on.
  SampleRows rows(Size sample, Size from, Size n) const {
    return {{first + sample * stride + from, n}, stride};
  }
  SampleRows rows(Size sample) const { return rows(sample, 0, count); }
};

/// Returns the runs of `samples` samples in a matrix with the rows of these parts of the share.
inline std::vector<PositionRun> runs_of(const Split& share, Range parts, Size samples) {
  std::vector<PositionRun> runs;
  Size before = 0;
  for (Size part = parts.begin; part < parts.end(); ++part) {
    const Range one = share.run(part, 0), two = share.run(part, 1);
    const Size n = share.count(part);
    if (one.count > 0) runs.push_back({before, n, one.begin, one.count});
    if (two.count > 0) runs.push_back({before + one.count, n, two.begin, two.count});
    before += samples * n;
  }
  return runs;
}

/// The runs of the queries and of the keys of an attention layer.
struct AttentionRuns {
  std::vector<PositionRun> queries, keys;
  Size query_block, key_block;  ///< positions of a block

  /// `keys_of`: the part of the share whose keys are there; -1: all that the layer reads.
  AttentionRuns(const LayerSpec& layer, Size samples, Size keys_of = -1)
      : query_block(layer.tiling.queries), key_block(layer.tiling.keys) {
    const SplitPart& share = layer.share;
    const bool is_whole = share.parts == 1;
    const Range all{0, share.parts}, own{share.part, 1};
    if (is_whole)
      queries = runs_of({layer.positions()}, all, samples);
    else
      queries = runs_of(share, layer.positions() == share.total() ? all : own, samples);
    keys = layer.inputs.size() > 1 && !is_whole
               ? runs_of(share, keys_of < 0 ? all : Range{keys_of, 1}, samples)
               : queries;
  }
};

/// A block of scores of a sample. Blocks without a visible key are left out, and so are the keys
/// behind the last visible one.
struct AttentionBlock {
  SampleRows queries, keys;
  Size key_position;  ///< of the first key
  Size seen;          ///< keys of the block that the first query sees; each next one sees one more
  bool is_first;      ///< the first block of these queries
};

/// Calls f(block) for the blocks of a sample, and finish(queries) after the last block of some
/// queries. The last queries come first: with one run, their blocks have all keys.
template <class F, class Finish>
void for_each_block(const AttentionRuns& runs, Size sample, const F& f, const Finish& finish) {
  const Size query_block = runs.query_block, key_block = runs.key_block;
  for (auto run = runs.queries.rbegin(); run != runs.queries.rend(); ++run)
    for (Size q = (run->count - 1) / query_block * query_block; q >= 0; q -= query_block) {
      const SampleRows queries = run->rows(sample, q, std::min(query_block, run->count - q));
      const Size position = run->position + q;
      bool is_first = true;
      for (const PositionRun& keys : runs.keys) {
        const Size visible = std::min(keys.count, position + queries.count - keys.position);
        for (Size k = 0; k < visible; k += key_block, is_first = false)
          f(AttentionBlock{queries, keys.rows(sample, k, std::min(key_block, visible - k)),
                           keys.position + k, position + 1 - keys.position - k, is_first});
      }
      finish(queries);
    }
}

}  // namespace tessera::detail
