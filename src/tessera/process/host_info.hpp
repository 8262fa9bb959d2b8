// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tessera {

/// Both return "unknown" if the system does not report it.
std::string host_name();
std::string cpu_model();

/// Returns the processors that the threads of this process may run on, in ascending order: those of
/// OpenMP's places with OMP_PROC_BIND, otherwise those of the calling thread.
std::vector<int> cpu_set();

}  // namespace tessera
