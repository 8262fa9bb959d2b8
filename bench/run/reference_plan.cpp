// SPDX-License-Identifier: Apache-2.0
#include "run/reference_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <tessera/base/error.hpp>
#include <tessera/base/text.hpp>
#include <tessera/config/config_io.hpp>
#include <tessera/plan/layout/rank_groups.hpp>
#include <tessera/predict/simulate.hpp>
#include <tessera/process/outcome.hpp>

#include "results/result_parts.hpp"

namespace tessera::bench {
namespace {

/// Returns the configuration of a reference. Its strategy also names the mesh axis.
Config on_ranks(Config config, Size ranks, Size microbatches) {
  const Strategy strategy = ranks == 1 ? Strategy::data : Strategy::fsdp;
  TrainingConfig& training = config.training;
  const DistributedConfig given = training.distributed;
  training.microbatches = microbatches;
  config.checkpoint = {};
  config.output = {};
  config.comm.backend = Backend::automatic;
  training.distributed = DistributedConfig{};
  training.distributed.strategy = strategy;
  training.distributed.world_size = ranks;
  training.distributed.mesh_shape = {ranks};
  training.distributed.mesh_axis_names = {std::string(name_of(strategy))};
  training.distributed.gradient_reduce_type = given.gradient_reduce_type;
  training.distributed.mixed_precision = given.mixed_precision;
  return config;
}

/// Returns the configuration with the fewest microbatches that fit into memory, or none if there
/// are too few samples.
std::optional<Config> fitting(const Config& config, Size ranks, const Limits& limits,
                              const DeviceTraits& traits) {
  Config run = on_ranks(config, ranks, 1);
  if (!limits.memory_bytes) return run;
  const auto memory_of = [&] { return largest_memory(plan_of(run, ranks, traits)).memory; };
  const Size limit = *limits.memory_bytes;
  const MemoryPlan memory = memory_of();
  const Size split = memory.activations + memory.scratch, whole = memory.total() - split;
  if (whole >= limit) return std::nullopt;
  // In the fixed order of sums, the number of ranks decides that of microbatches.
  const Size most = config.training.numerics.reproducible
                        ? 1
                        : std::max<Size>(config.training.batch_size, ranks) / ranks;
  // Starts at a lower bound, because plans of many microbatches are long.
  for (Size count = (std::max<Size>(split, 1) - 1) / (limit - whole) + 1; count <= most;) {
    run = on_ranks(config, ranks, count);
    if (fits(memory_of().total(), limits)) return run;
    count = count < most ? std::min(2 * count, most) : most + 1;
  }
  return std::nullopt;
}

}  // namespace

std::string reference_name(const Config& config) {
  return fmt::format("reference-{:08x}", hash_of(config_as_json(on_ranks(config, 1, 1))));
}

ReferencePlan plan_reference(const Config& config, const VerifyRules& rules, const Limits& limits,
                             Size available, const DeviceTraits& traits) {
  const Size most = std::min({rules.ranks, available, config.training.batch_size});
  for (Size ranks = 1; ranks / 2 < most; ranks *= 2) {
    const Size tried = std::min(ranks, most);
    if (const std::optional<Config> run = fitting(config, tried, limits, traits))
      return {reference_name(config), *run, tried};
  }
  throw Error(ExitCode::out_of_memory, "does not fit into {} with any number of microbatches",
              human_bytes(*limits.memory_bytes));
}

Size block_steps(const MeasureRules& rules, double step_seconds) {
  const auto per_round = [&](Size steps) { return (steps + rules.rounds - 1) / rules.rounds; };
  const double wanted = std::min(std::ceil(rules.block_seconds / step_seconds), 1e9);
  return std::max(per_round(rules.steps),
                  std::min(per_round(rules.max_steps), static_cast<Size>(wanted)));
}

}  // namespace tessera::bench
