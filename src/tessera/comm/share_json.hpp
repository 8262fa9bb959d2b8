// SPDX-License-Identifier: Apache-2.0
// Exchanges JSON documents between ranks, for set-up and reports. Not made for speed. The ledger
// does not count it.
#pragma once

#include <functional>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/comm/communicator.hpp>

namespace tessera {

/// Returns the documents of all ranks, by rank, on rank 0, and nothing on the other ranks, which
/// thus need no memory for them. Collective.
std::vector<nlohmann::json> gather_json(const Communicator& ranks, const nlohmann::json& mine,
                                        Site site = Site::current());

/// Returns the document of rank 0 on every rank. Collective.
nlohmann::json broadcast_json(const Communicator& ranks, const nlohmann::json& mine,
                              Site site = Site::current());

/// Rank 0 calls `conclude` with the documents of all ranks. Returns its result on every rank.
/// `conclude` must not throw, because the other ranks wait for it. Collective.
nlohmann::json conclude_json(
    const Communicator& ranks, const nlohmann::json& mine,
    const std::function<nlohmann::json(const std::vector<nlohmann::json>&)>& conclude,
    Site site = Site::current());

}  // namespace tessera
