// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace tessera::bench {

/// {"host", "id", "start"} of this process: numbers of processes are used again, with another
/// start.
nlohmann::json this_process();

/// Whether the process is this host's.
bool is_here(const nlohmann::json& process);

/// Whether a process of this host still runs; one that only waits to be buried does not.
bool is_alive(const nlohmann::json& process);

}  // namespace tessera::bench
