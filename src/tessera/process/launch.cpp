// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/process/launch.hpp>

namespace tessera {
namespace {

struct LauncherVariables {
  const char* size;
  const char* rank;
};

// The launcher nearest to the process comes first: mpirun inside a Slurm job leaves Slurm's
// variables in place, where they describe mpirun's daemons. Batch scripts also have SLURM_NTASKS,
// so it is not in the table.
constexpr std::array<LauncherVariables, 4> launchers = {{
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"PMI_SIZE", "PMI_RANK"},
    {"FLUX_JOB_SIZE", "FLUX_TASK_RANK"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
}};

std::optional<int> count_of(const char* text) {
  const std::optional<int> count = number_of<int>(text != nullptr ? text : "");
  return count && *count >= 0 ? count : std::nullopt;
}

}  // namespace

std::optional<Launch> detect_launch(const Environment& environment) {
  for (const LauncherVariables& names : launchers) {
    const std::optional<int> size = count_of(environment(names.size));
    if (!size) continue;
    return Launch{names.size, *size, count_of(environment(names.rank)).value_or(0)};
  }
  return std::nullopt;
}

void check_launch(const Launch& launch, int world_size) {
  if (launch.size <= 1 || world_size != 1) return;
  throw Error(ExitCode::usage,
              "the launcher started {0} processes ({1} = {0}) but MPI_COMM_WORLD has 1: "
              "the program and the launcher use different MPI libraries",
              launch.size, launch.variable);
}

}  // namespace tessera
