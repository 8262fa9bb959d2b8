// SPDX-License-Identifier: Apache-2.0
// What readers of a results directory rely on (bench/RESULTS.md). These throw Error (usage), with
// file and key, for a document that is otherwise; what nothing reads may be anything.
#pragma once

#include <array>

#include "results/stored_document.hpp"

namespace tessera::bench {

inline constexpr std::array statuses{"ok",     "unverified", "invalid", "oom",    "timeout",
                                     "failed", "skipped",    "running", "pending"};

void check_study(const StoredDocument& study);
void check_launch(const StoredDocument& launch);
/// Of the case with this id.
void check_result(const StoredDocument& result, const std::string& id);
void check_steps(const StoredDocument& steps);
void check_reference(const StoredDocument& reference);
void check_calibrations(const StoredDocument& calibrations);

}  // namespace tessera::bench
