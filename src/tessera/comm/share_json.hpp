// SPDX-License-Identifier: Apache-2.0
// Documents between ranks. For set-up and reports: nothing here is fast, or counted as traffic.
#pragma once

#include <functional>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/comm/communicator.hpp>

namespace tessera {

/// Every rank's document, by rank, on rank 0; nothing on the others, which would each need the
/// memory for all of them. Collective.
std::vector<nlohmann::json> gather_json(const Communicator& ranks, const nlohmann::json& mine,
                                        Site site = Site::current());

/// Rank 0's document, on every rank. Collective.
nlohmann::json broadcast_json(const Communicator& ranks, const nlohmann::json& mine,
                              Site site = Site::current());

/// What rank 0 makes of every rank's document, on every rank. `conclude` must not throw: the others
/// wait for it. Collective.
nlohmann::json conclude_json(
    const Communicator& ranks, const nlohmann::json& mine,
    const std::function<nlohmann::json(const std::vector<nlohmann::json>&)>& conclude,
    Site site = Site::current());

}  // namespace tessera
