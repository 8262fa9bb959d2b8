// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <tessera/base/outcome.hpp>
#include <tessera/comm/communicator.hpp>
#include <tessera/comm/detail/mpi_handle.hpp>

#include "study/study.hpp"

namespace tessera::bench {

/// Ranks of the job that work together, with the backend that they ask for.
struct Group {
  Communicator ranks;
  MpiHandle raw;  ///< to agree with each other on how something has ended
};

/// How `work` ended on the ranks of a group, the same on all of them; ends the job if that cannot
/// be found out, because others wait for this rank in a collective that will never end. Collective
/// over the group.
Outcome run_on_group(const Group& group, const Limits& limits, const std::function<void()>& work);

}  // namespace tessera::bench
