// SPDX-License-Identifier: Apache-2.0
// The commands of `tessera`: what each is given, and what answers it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tessera/base/names.hpp>
#include <tessera/checkpoint/model_export.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/process/run_main.hpp>
#include <tessera/process/runtime.hpp>

namespace tessera {

struct TrainOptions {
  ConfigSource source{};
  std::string json{};       ///< file for the results; empty: none
  std::string export_to{};  ///< directory for samples and predictions; empty: none
  /// Checkpoint to go on from; empty: the latest of the configuration's directory.
  std::optional<std::string> resume{};
  bool resume_if_present = false;  ///< the latest, or from the beginning if there is none
  std::string until{};             ///< when to stop with a checkpoint; empty: at the end
  bool quiet = false;
  bool print_config = false;  ///< print the resolved configuration and train nothing
};

/// `tessera run`: trains as the configuration says and reports on rank 0. Collective. Throws Error
/// (wrong_result), on every rank, if one rank's traffic or memory was not what the plan says.
/// Returns stopped, on every rank, if it was told to end early and has.
ExitCode run_command(Runtime& runtime, const TrainOptions& options);

struct PlanOptions {
  ConfigSource source{};
  std::string json{};     ///< file for the plan or the advice; empty: none
  std::string machine{};  ///< machine file; empty: no times are predicted
  bool advises = false;   ///< search for the best plan in place of showing one
};

/// `tessera plan`: prints the plan of a configuration's step, or of the best ones. Starts neither
/// MPI nor a device. The number of ranks is what the configuration asks for: a mesh without -1, or
/// world_size.
ExitCode plan_command(const PlanOptions& options);

struct InspectOptions {
  ConfigSource source{};
};

/// `tessera inspect`: shows, on rank 0, which part of every tensor each rank of this launch holds.
/// Collective.
ExitCode inspect_command(Runtime& runtime, const InspectOptions& options);

struct InfoOptions {};

/// `tessera info`: what this program was built with and runs on, printed by rank 0. Collective.
ExitCode info_command(Runtime& runtime);

/// What `tessera checkpoint` does with a file.
enum class CheckpointAction : std::uint8_t {
  show,     ///< prints what is in it
  verify,   ///< reads all of it, and says that it is what was written
  save_as,  ///< writes the parameters to a file that other programs read
};
template <>
inline constexpr std::array<std::string_view, 3> names_of<CheckpointAction>{"show", "verify",
                                                                            "export"};

struct CheckpointOptions {
  CheckpointAction action = CheckpointAction::show;
  std::string file{};
  std::string format{name_of(ExportFormat::npz)};
  std::string names{name_of(ExportNames::tessera)};
  std::string to{};  ///< empty: beside the checkpoint, with the format in place of its ending
};

/// `tessera checkpoint`. Starts neither MPI nor a device. Throws Error for a file that is not a
/// whole checkpoint.
ExitCode checkpoint_command(const CheckpointOptions& options);

using Command = std::variant<ShowText, TrainOptions, PlanOptions, InspectOptions, CheckpointOptions,
                             InfoOptions>;

/// The command that the arguments after the program's name ask for. Needs neither MPI nor a device.
/// Arguments that begin with --kokkos- are left to Kokkos. Throws Error with exit code usage.
Command parse_command_line(const std::vector<std::string>& arguments);

}  // namespace tessera
