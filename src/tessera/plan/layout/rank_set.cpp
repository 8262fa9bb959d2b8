// SPDX-License-Identifier: Apache-2.0
#include <tessera/plan/layout/rank_set.hpp>
#include <tessera/plan/plan_input.hpp>

namespace tessera {

std::vector<std::string> axes_of(RankSet ranks, const PlanInput& input) {
  const auto with = [](std::vector<std::string> axes, std::vector<std::string> more) {
    axes.insert(axes.end(), more.begin(), more.end());
    return axes;
  };
  const auto without_expert = [](std::vector<std::string> axes) {
    std::erase(axes, "expert");
    return axes;
  };
  switch (ranks) {
    case RankSet::batch:
      return replicating_axes(input.mesh);
    case RankSet::shard:
      return shard_axes(input.strategy, input.mesh);
    case RankSet::replica:
      return replica_axes(input.strategy, input.mesh);
    case RankSet::model:
      return {"model"};
    case RankSet::context:
      return {"context"};
    case RankSet::pipeline:
      return {"pipeline"};
    case RankSet::expert:
      return {"expert"};
    case RankSet::expert_batch:
      return without_expert(replicating_axes(input.mesh));
    case RankSet::expert_shard:
      return without_expert(shard_axes(input.strategy, input.mesh));
    case RankSet::expert_replica:
      return without_expert(replica_axes(input.strategy, input.mesh));
    case RankSet::split:
      return with(axes_of(RankSet::expert_shard, input), {"expert", "model", "pipeline"});
    case RankSet::loss:
      return with(replicating_axes(input.mesh), {"pipeline"});
    case RankSet::mesh:
      return input.mesh.axis_names();
  }
  return {};
}

}  // namespace tessera
