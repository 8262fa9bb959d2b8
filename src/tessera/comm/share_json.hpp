// SPDX-License-Identifier: Apache-2.0
// Documents between ranks. For set-up and reports: nothing here is fast, or counted as traffic.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/comm/communicator.hpp>

namespace tessera {

/// Every rank's document, by rank, on every rank. Collective.
std::vector<nlohmann::json> gather_json(const Communicator& ranks, const nlohmann::json& mine,
                                        Site site = Site::current());

/// The same on rank 0 alone, and nothing on the others. Collective.
std::vector<nlohmann::json> gather_json_on_first(const Communicator& ranks,
                                                 const nlohmann::json& mine,
                                                 Site site = Site::current());

/// Rank 0's document, on every rank. Collective.
nlohmann::json broadcast_json(const Communicator& ranks, const nlohmann::json& mine,
                              Site site = Site::current());

}  // namespace tessera
