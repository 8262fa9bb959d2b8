// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tessera {

/// "unknown" where the system does not tell.
std::string host_name();
std::string cpu_model();

/// Processors that the calling thread may run on, ascending.
std::vector<int> cpu_set();

}  // namespace tessera
