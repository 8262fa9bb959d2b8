// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

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
constexpr std::array<LauncherVariables, 9> launchers = {{
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},  // MVAPICH2
    {"MVP_COMM_WORLD_SIZE", "MVP_COMM_WORLD_RANK"},  // MVAPICH 3
    {"PMI_SIZE", "PMI_RANK"},
    {"PALS_LOCAL_SIZE", "PALS_RANKID"},  // PALS tells the ranks of a node only
    {"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"},
    {"FLUX_JOB_SIZE", "FLUX_TASK_RANK"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
    {"WORLD_SIZE", "RANK"},  // torchrun, which starts no MPI
}};

std::optional<int> count_of(const char* text) {
  const std::optional<int> count = number_of<int>(text != nullptr ? text : "");
  return count && *count >= 0 ? count : std::nullopt;
}

}  // namespace

std::optional<Launch> detect_launch(const Environment& environment) {
  for (const LauncherVariables& names : launchers) {
    const std::optional<int> size = count_of(environment(names.size)),
                             rank = count_of(environment(names.rank));
    if (size && rank) return Launch{names.size, std::max(*size, *rank + 1), *rank};
  }
  return std::nullopt;
}

}  // namespace tessera
