// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/comm/communicator.hpp>

namespace tessera {

/// Every rank's document, by rank, on every rank. Collective. For reports: nothing here is fast.
std::vector<nlohmann::json> gather_json(const Communicator& world, const nlohmann::json& mine);

}  // namespace tessera
