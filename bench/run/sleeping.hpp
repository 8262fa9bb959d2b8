// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera::bench {

/// Returns when every rank of the job has come. Ranks that wait sleep, so that those that work have
/// the machine for themselves; no watchdog finds them late. Collective over all ranks of the job.
void sleep_until_all_arrive();

}  // namespace tessera::bench
