// SPDX-License-Identifier: Apache-2.0
// Plans as execution traces of MLCommons Chakra (Sridharan et al. 2023), which simulators of
// networks read. "Execution traces" in the README of app says what is in them.
#pragma once

#include <filesystem>
#include <vector>

#include <tessera/predict/step_works.hpp>

namespace tessera {

/// Writes a step of a plan: a trace for each of `ranks`, "PATH.RANK.et", and in "PATH.groups.json"
/// the groups of ranks of their calls. Kernels take the times of `cost`; without it the traces have
/// no times. Returns the number of calls in which ranks have shares of different sizes. Throws
/// Error (usage) if a file cannot be written.
Size write_chakra(const Plan& plan, const CostOf& cost, const std::vector<Size>& ranks,
                  const std::filesystem::path& path);

}  // namespace tessera
