// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/config/config.hpp>
#include <tessera/plan/plan.hpp>

#include "study/study.hpp"

namespace tessera::bench {

/// One point of a study.
struct Case {
  std::string id;     ///< readable, and unique by a hash of the configuration
  std::string label;  ///< its factors: the same point of another run of the study has the same
  /// strategy, mesh, ranks, global_batch, microbatches, and what else a grid varies.
  nlohmann::json factors;
  Config config;  ///< complete: nothing is left to the launch
  MeshShape mesh{{{"data", 1}}};
  Topology topology{1};                      ///< of its ranks
  std::optional<std::string> skip_reason{};  ///< excluded, or no valid configuration

  Size ranks() const { return mesh.num_ranks(); }
  Size batch() const { return config.training.batch_size; }
};

/// The cases of all grids in their order, each once: a factor that makes no difference to a case is
/// dropped from it. Each runs on the first ranks of the launch, whose nodes tell what a mesh with
/// "nodes" is; where there is no launch, or it has fewer ranks, a node has the processes that the
/// study gives it. Throws ConfigError for a grid that makes no sense.
std::vector<Case> make_cases(const Study& study, const std::optional<Topology>& launch = {});

/// Whether some meshes depend on how many ranks a node has.
bool depends_on_nodes(const Study& study);

/// Whether a configuration key makes a difference on this mesh.
bool applies(const std::string& key, const std::string& strategy, const MeshShape& mesh);

/// Of a configuration on this number of ranks. Throws ConfigError if there is none.
Plan plan_of(const Config& config, Size ranks);

/// Those factors that are keys of the configuration, "key=value" as people write it.
std::vector<std::string> other_factors(const nlohmann::json& factors);

/// Fills in label and id.
void name_case(Case& point);

/// 32 bits that tell documents of a study apart.
std::uint32_t hash_of(const nlohmann::json& document);

}  // namespace tessera::bench
