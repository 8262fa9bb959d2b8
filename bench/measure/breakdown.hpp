// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <tessera/trace/region_timer.hpp>

#include "document/document.hpp"

namespace tessera::bench {

/// Mean seconds per step.
struct Share {
  double max_rank_seconds = 0;
  double mean_rank_seconds = 0;

  TESSERA_FIELDS(max_rank_seconds, mean_rank_seconds);
};

/// Calls of one axis and operation in a step: mean over ranks.
struct CallTime {
  std::string axis;
  Operation operation = Operation::barrier;
  double calls = 0;
  double seconds = 0;  ///< without waiting
  double waiting = 0;  ///< for ranks that arrive later
};

struct Breakdown {
  Size steps = 0;
  double step_seconds = 0;  ///< mean over ranks
  Share compute, communication, idle, optimizer, other;
  Share products;               ///< matrix products, part of compute
  std::vector<CallTime> calls;  ///< not in documents, whose traffic has them

  TESSERA_FIELDS(steps, step_seconds, compute, communication, idle, optimizer, other, products);
};

/// Combines the ranks' traces of `steps` steps. The time in a call is idle while it waits, and
/// communication otherwise.
Breakdown break_down(const std::vector<RankTrace>& ranks, Size steps);

}  // namespace tessera::bench
