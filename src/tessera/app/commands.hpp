// SPDX-License-Identifier: Apache-2.0
// The commands of `tessera`: their options and their functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tessera/app/run_trace.hpp>
#include <tessera/base/names.hpp>
#include <tessera/checkpoint/model_export.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/plan/plan_text.hpp>
#include <tessera/process/run_main.hpp>
#include <tessera/process/runtime.hpp>

namespace tessera {

struct TrainOptions {
  ConfigSource source{};
  std::string json{};   ///< file for the results; empty: none
  std::string trace{};  ///< file for the trace; empty: none
  TracedSteps trace_steps = default_traced_steps;
  std::string export_to{};  ///< directory for samples and predictions; empty: none
  /// Checkpoint to resume from; empty: the latest one in checkpoint.directory.
  std::optional<std::string> resume{};
  bool resume_if_present = false;  ///< resume from the latest checkpoint, or start anew without one
  std::string machine{};           ///< machine file; empty: no share of its peak is shown
  std::string progress{};          ///< name of a ProgressMode; empty: TESSERA_PROGRESS, or auto
  std::optional<Size> until{};     ///< time to stop with a checkpoint, in seconds since 1970
  bool quiet = false;
  bool print_config = false;  ///< print the resolved configuration and train nothing
};

/// `tessera run`: trains and reports on rank 0. Collective. Throws Error (wrong_result) on every
/// rank if the traffic or memory of one rank differs from the plan. Returns ExitCode::stopped if it
/// was told to stop early and has written a checkpoint.
ExitCode run_command(Runtime& runtime, const TrainOptions& options);

struct PlanOptions {
  ConfigSource source{};
  std::string json{};      ///< file for the plan or the advice; empty: none
  std::string timeline{};  ///< file for the memory of a rank during a step; empty: none
  std::optional<Size> timeline_rank{};  ///< empty: the lowest of those that need most memory
  std::string chakra{};                 ///< directory for execution traces; empty: none
  std::vector<Size> chakra_ranks{};     ///< ranks whose traces are written; none: all
  std::string machine{};                ///< machine file; empty: no times are predicted
  std::string progress{};               ///< as in TrainOptions
  PlanParts parts{};                    ///< what to show besides the summary
  bool advises = false;  ///< search for the fastest configuration instead of showing one plan
};

/// `tessera plan`: prints the plan of one step, or the fastest configurations. Starts neither MPI
/// nor a device. The configuration sets the number of ranks: a mesh without -1, or world_size.
ExitCode plan_command(const PlanOptions& options);

struct InfoOptions {};

/// `tessera info`: prints on rank 0 how the program was built and what it runs on. Collective.
ExitCode info_command(Runtime& runtime);

enum class CheckpointAction : std::uint8_t {
  show,     ///< print its training state and arrays
  verify,   ///< read all of it and compare it with its checksums
  save_as,  ///< write the parameters to a file for other programs
};
template <>
inline constexpr std::array<std::string_view, 3> names_of<CheckpointAction>{"show", "verify",
                                                                            "export"};

struct CheckpointOptions {
  CheckpointAction action = CheckpointAction::show;
  std::string file{};
  std::string names{name_of(ExportNames::tessera)};
  std::string dtype{};  ///< element type; empty: as in the checkpoint
  std::string to{};     ///< empty: the checkpoint's name with `names` before the extension
  std::vector<std::string> select{};  ///< beginnings of names; none: the parameters
};

/// `tessera checkpoint`. Starts neither MPI nor a device. Throws Error if the file is not a
/// complete checkpoint.
ExitCode checkpoint_command(const CheckpointOptions& options);

struct DiffOptions {
  std::string a{}, b{};  ///< two files of output.hashes
};

/// `tessera diff`: prints the first step and the tensor whose hashes differ. Starts neither MPI nor
/// a device. Returns ExitCode::wrong_result if they differ. Throws Error (usage) for files that
/// cannot be compared.
ExitCode diff_command(const DiffOptions& options);

using Command =
    std::variant<ShowText, TrainOptions, PlanOptions, CheckpointOptions, DiffOptions, InfoOptions>;

/// Parses the arguments after the program's name. Needs neither MPI nor a device. Leaves arguments
/// that begin with --kokkos- to Kokkos. Throws Error (usage).
Command parse_command_line(const std::vector<std::string>& arguments);

}  // namespace tessera
