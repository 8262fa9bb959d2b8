// SPDX-License-Identifier: Apache-2.0
// Files of passes, as read_passes() reads them.
#pragma once

#include <set>
#include <string>

#include <fmt/format.h>

#include <tessera/plan/pipeline/pipeline_actions.hpp>

namespace tessera::test {

/// Returns the text of a file of passes: "0F0,0I0,0W0\n".
inline std::string text_of(const PassLists& passes, const PipelineShape& shape) {
  std::string text;
  for (std::size_t k = 0; k < passes.size(); ++k) {
    for (const StagePass& pass : passes[k])
      text += fmt::format("{}{}{},", chunk_number(static_cast<Size>(k), pass.chunk, shape),
                          "FBIW"[static_cast<int>(pass.kind)], pass.microbatch);
    text.back() = '\n';
  }
  return text;
}

/// Draws passes in any order that a pipeline of this shape can run. Its schedule says where chunks
/// lie, and whether the backward pass is split.
template <class Random>
PassLists random_passes(Random& random, const PipelineShape& shape) {
  PassLists lists(static_cast<std::size_t>(shape.stages));
  std::set<PlacedPass> done;
  for (;;) {
    std::vector<PlacedPass> ready;
    for (Size k = 0; k < shape.stages; ++k)
      for (Size c = 0; c < shape.virtual_stages; ++c)
        for (const PassKind kind : kinds_of(shape)) {
          PlacedPass next{k, {kind, 0, c}};
          while (done.contains(next)) ++next.pass.microbatch;
          const std::optional<PlacedPass> needed = needed_by(next, shape);
          if (next.pass.microbatch < shape.microbatches && (!needed || done.contains(*needed)))
            ready.push_back(next);
        }
    if (ready.empty()) return lists;
    const PlacedPass& next =
        ready[static_cast<std::size_t>(random.number(0, std::ssize(ready) - 1))];
    lists[static_cast<std::size_t>(next.stage)].push_back(next.pass);
    done.insert(next);
  }
}

}  // namespace tessera::test
