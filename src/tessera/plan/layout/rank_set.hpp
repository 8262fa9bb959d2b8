// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

struct PlanInput;

/// The ranks that take part in a call.
enum class RankSet : std::uint8_t {
  batch,           ///< ranks with different samples of the batch, or different positions of them
  shard,           ///< ranks of `batch` that shard one replica of the training state
  replica,         ///< ranks of `batch` that hold the same state
  model,           ///< ranks that split the layers: tensor parallelism
  context,         ///< ranks that split the positions of samples
  pipeline,        ///< the stages of the pipeline, for messages only
  expert,          ///< ranks of `batch` that split the experts
  expert_batch,    ///< batch, shard and replica for the parameters of experts: without the axis
  expert_shard,    ///< `expert`
  expert_replica,  ///< likewise
  split,  ///< ranks that together hold each parameter's state once: shard, expert, model and
          ///< pipeline
  loss,   ///< ranks that hold terms of the loss: batch and pipeline
  mesh,   ///< all ranks
};
inline constexpr std::array rank_sets{
    RankSet::batch,        RankSet::shard,          RankSet::replica, RankSet::model,
    RankSet::context,      RankSet::pipeline,       RankSet::expert,  RankSet::expert_batch,
    RankSet::expert_shard, RankSet::expert_replica, RankSet::split,   RankSet::loss,
    RankSet::mesh};

/// Returns the mesh axes of a set. Axes of size 1 may be among them.
std::vector<std::string> axes_of(RankSet ranks, const PlanInput& input);

/// Returns the ranks that share or repeat the parameters of experts as `ranks` do the others.
constexpr RankSet for_experts(RankSet ranks) {
  if (ranks == RankSet::batch) return RankSet::expert_batch;
  if (ranks == RankSet::shard) return RankSet::expert_shard;
  return ranks == RankSet::replica ? RankSet::expert_replica : ranks;
}

}  // namespace tessera
