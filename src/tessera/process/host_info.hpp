// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tessera {

/// Both return "unknown" if the system does not report it.
std::string host_name();
std::string cpu_model();

/// Returns the processors that the calling thread may run on, in ascending order.
std::vector<int> cpu_set();

}  // namespace tessera
