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

/// Throws Error (usage) unless they are complete.
void check_factors(const StoredDocument& factors);
auto checked_factors(auto& factors) { return CheckedField{factors, &check_factors}; }

/// One point of a study.
struct Case {
  std::string id;     ///< readable, and unique by a hash of the configuration
  std::string label;  ///< its factors; the same in another run of the study
  /// strategy, mesh, ranks, global_batch, microbatches, and other keys that a grid varies.
  nlohmann::json factors;
  Config config;  ///< complete; does not depend on the launch
  MeshShape mesh{{{"data", 1}}};
  Topology topology{1};                      ///< nodes of its ranks
  std::optional<std::string> skip_reason{};  ///< excluded, or no valid configuration

  Size ranks() const { return mesh.num_ranks(); }
  Size batch() const { return config.training.batch_size; }

  /// Those that study.json has.
  static void fields(auto& f, auto& v) {
    f("id", required(v.id), "label", required(v.label), "factors", checked_factors(v.factors),
      "skip_reason", v.skip_reason);
  }
};

/// A study and its cases: study.json (bench/RESULTS.md).
struct StudyCases {
  Study study;
  std::vector<Case> cases;

  static void fields(auto& f, auto& v) {
    Study::fields(f, v.study);
    f("schema_version", written(1), "strategies", written(names_of<Strategy>), "cases", v.cases);
  }
};

/// Returns the cases of all grids in order. A factor that makes no difference to a case is dropped
/// from it, and equal cases are merged. A case runs on the first ranks of the launch, whose nodes
/// resolve the mesh size "nodes". Without a launch, or with too few ranks, a node has the number of
/// processes that the study gives. Throws ConfigError for an invalid grid.
std::vector<Case> make_cases(const Study& study, const std::optional<Topology>& launch = {});

/// Returns true if some meshes depend on the number of ranks per node.
bool depends_on_nodes(const Study& study);

/// Returns true if a configuration key makes a difference on this mesh.
bool applies(const std::string& key, const std::string& strategy, const MeshShape& mesh);

/// Returns the plan of a configuration on this number of ranks. Throws ConfigError for an invalid
/// configuration.
Plan plan_of(const Config& config, Size ranks);

/// Returns the factors that are configuration keys, each as "key=value".
std::vector<std::string> other_factors(const nlohmann::json& factors);

/// Sets label and id.
void name_case(Case& point);

/// Returns a 32-bit hash that distinguishes documents of a study.
std::uint32_t hash_of(const nlohmann::json& document);

}  // namespace tessera::bench
