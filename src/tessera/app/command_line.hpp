// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include <tessera/app/commands.hpp>
#include <tessera/base/run_main.hpp>

namespace tessera {

using Command = std::variant<ShowText, TrainOptions, PlanOptions, InspectOptions, CheckpointOptions,
                             InfoOptions>;

/// The command that the arguments after the program's name ask for. Needs neither MPI nor a device.
/// Arguments that begin with --kokkos- are left to Kokkos. Throws Error with exit code usage.
Command parse_command_line(const std::vector<std::string>& arguments);

}  // namespace tessera
