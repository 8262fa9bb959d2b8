// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace tessera::bench {

/// Returns when every rank of the job has come. Ranks that wait sleep, so that those that work have
/// the machine for themselves; no watchdog finds them late. Collective over all ranks of the job.
void sleep_until_all_arrive();

/// The first rank works while the others sleep.
void on_first_rank(int rank, const std::function<void()>& work);

}  // namespace tessera::bench
