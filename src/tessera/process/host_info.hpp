// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tessera {

/// Both return "unknown" if the system does not report it.
std::string host_name();
std::string cpu_model();

/// Returns the processors that the threads of this process may run on, in ascending order: all
/// processors of OpenMP's places with OMP_PROC_BIND, otherwise the calling thread's. Reads them the
/// first time, before the runtime binds threads.
const std::vector<int>& cpu_set();

}  // namespace tessera
