// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace tessera {

/// Processors' worth of time that the control groups of a process allow it, which is how containers
/// and schedulers limit it: the least quota of its groups and of those above them, in version 1 and
/// version 2 of control groups, wherever they are mounted. None where there is no limit. `process`
/// holds the files `cgroup` and `mountinfo`.
std::optional<double> cpu_quota(const std::string& process = "/proc/self");

}  // namespace tessera
