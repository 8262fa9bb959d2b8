// SPDX-License-Identifier: Apache-2.0
// Checks of the documents of a results directory (bench/RESULTS.md). They throw Error (usage) with
// file and key for a value that readers cannot use.
#pragma once

#include <array>

#include "results/stored_document.hpp"

namespace tessera::bench {

inline constexpr std::array statuses{"ok",     "unverified", "invalid", "oom",    "timeout",
                                     "failed", "skipped",    "running", "pending"};

void check_factors(const StoredDocument& factors);
void check_study(const StoredDocument& study);
void check_launch(const StoredDocument& launch);
void check_steps(const StoredDocument& steps);

}  // namespace tessera::bench
