// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <string_view>

#include <tessera/base/error.hpp>
#include <tessera/process/launch.hpp>

namespace tessera {
namespace {

struct LauncherVariables {
  const char* size;
  const char* rank;
};

// The launcher nearest to the process first: mpirun inside a Slurm job leaves Slurm's variables in
// place, and they then describe its daemons. SLURM_NTASKS is not asked: batch scripts have it too.
constexpr std::array<LauncherVariables, 4> launchers = {{
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"PMI_SIZE", "PMI_RANK"},
    {"FLUX_JOB_SIZE", "FLUX_TASK_RANK"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
}};

std::optional<int> number(const char* text) {
  if (text == nullptr) return std::nullopt;
  const std::string_view view(text);
  int value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Launch> detect_launch(const Environment& environment) {
  for (const LauncherVariables& names : launchers) {
    const std::optional<int> size = number(environment(names.size));
    if (!size) continue;
    return Launch{names.size, *size, number(environment(names.rank)).value_or(0)};
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
