// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/fields.hpp>
#include <tessera/config/config.hpp>
#include <tessera/io/file_uses.hpp>
#include <tessera/nn/products/gemm.hpp>
#include <tessera/plan/plan.hpp>

#include "document/document.hpp"

namespace tessera::bench {

/// The batch that stays the same when ranks are added.
enum class ScalingKind : std::uint8_t {
  strong,  ///< the global batch
  weak,    ///< the batch of a rank
};

/// Rules for timing the step of a case in rounds, which are short blocks of steps spread over the
/// launch.
struct MeasureRules {
  Size warm_up = 5;                 ///< steps, whenever a case has been set up
  Size rounds = 12;                 ///< per launch
  Size launches = 1;                ///< a case is done when so many have measured it
  Size steps = 30;                  ///< at least, in all rounds of a launch together
  Size max_steps = 1000;            ///< at most, while a block is shorter than `block_seconds`
  double block_seconds = 0.05;      ///< duration of a round's steps
  Size keep_bytes = Size{1} << 30;  ///< memory per rank for cases that stay set up between rounds
  Size instrumented_steps = 5;      ///< steps of the run that finds the breakdown
  Size checkpoints = 3;             ///< timed per case, if checkpoint.directory is set
  Size gemm_size = peak_gemm_size;  ///< rows of the square product that is the machine's peak
};

struct Limits {
  double case_seconds = 600;         ///< of a case with its set-up, and of a reference
  std::optional<Size> memory_bytes;  ///< device memory that a rank may use; unset: not predicted
  std::optional<double> vendor_peak_flops_per_second;  ///< per rank, as its vendor states
};

/// Rules for verifying the losses of a case against those of a run that shards nothing.
struct VerifyRules {
  bool enabled = true;        ///< without it cases are "unverified"
  double tolerance = 1e-5;    ///< relative difference of losses
  std::optional<Size> steps;  ///< compared steps; unset: all epochs of the configuration
  Size ranks = 1;             ///< at most, for a reference that does not fit on one rank
};

/// Factor or configuration key -> its values. All grids of a study together make its cases.
using Grid = std::map<std::string, std::vector<nlohmann::json>>;

/// Cases that have one of the given values in each of these factors are not run.
struct Exclusion {
  std::string reason;
  Grid where;
};

/// Selects the cases that the others are compared with: cases of the same work with this many ranks
/// (unset: the fewest that ran), and of several this strategy.
struct Baseline {
  std::optional<Size> ranks;
  std::string strategy = "data";
};

struct Study;
/// The fields of [baseline], [measure], [limits] and [verify].
const Fields<Study>& rule_fields();

/// A sweep: the common configuration of its cases, the keys that vary, and the rules of measuring.
struct Study {
  std::string name;
  std::string description;
  std::string file;
  std::string base_file;  ///< beside it, unless the path is absolute
  bool small = false;     ///< in the small variant, which shows that the study works
  Config base;
  /// The study says how many samples there are; otherwise there are enough for every batch.
  bool gives_samples = false;
  std::vector<Grid> grids;
  std::vector<Exclusion> exclusions;
  ScalingKind scaling = ScalingKind::strong;
  Baseline baseline;
  MeasureRules measure;
  Limits limits;
  VerifyRules verify;
  std::uint64_t seed = 1;  ///< for the order of cases

  /// Lists the fields that study.json has.
  static void fields(auto& f, auto& v) {
    f("name", v.name, "", required);
    f("description", v.description);
    f("file", v.file);
    f("small", v.small, "of --small");
    f("scaling", v.scaling, "strong or weak");
    f(rule_fields(), v);
  }
};

/// The names of factors that are no configuration keys: strategy, mesh, ranks, ...
inline constexpr std::array<std::string_view, 9> factor_names{
    "strategy",     "ranks",           "mesh",   "meshes_over", "global_batch", "batch_per_rank",
    "microbatches", "mixed_precision", "threads"};
/// Returns the name under which cases have a factor: the configuration key of a short name.
inline std::string name_in_cases(const std::string& factor) {
  return factor == "mixed_precision" || factor == "threads" ? "distributed." + factor : factor;
}

struct StudySource {
  std::string file{};
  bool small = false;
  std::vector<std::string> overrides{};  ///< "measure.steps=10", "model.dtype=float64"
  /// In place of those of every grid, unless they are empty.
  std::vector<Size> ranks{};
  std::vector<std::string> strategies{};
};

/// Reads a study (bench/README.md). Throws Error (usage) that names the key, its value and what is
/// allowed.
Study load_study(const StudySource& source);

/// Throws Error (usage) unless they are complete.
void check_factors(const StoredDocument& factors);

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

  /// Lists the fields that study.json has.
  static void fields(auto& f, auto& v) {
    f("id", v.id, "readable, and unique by a hash of the configuration", required);
    f("label", v.label, "its factors in words", required);
    f("factors", v.factors,
      "strategy, mesh, ranks, global_batch, microbatches; batch_per_rank if the grid gave it, and "
      "keys that a grid varied",
      check_factors);
    f("skip_reason", v.skip_reason, "excluded, or no valid configuration");
  }
};

/// A study and its cases: study.json (bench/RESULTS.md).
struct StudyCases {
  Study study;
  std::vector<Case> cases;

  static void fields(auto& f, auto& v) {
    Study::fields(f, v.study);
    f("schema_version", written(1));
    f("cases", v.cases,
      "in the order of the grids, then measured ones of earlier launches with other grids");
  }
};

/// Returns the cases of all grids in order. A factor that makes no difference to a case is dropped
/// from it, and equal cases are merged. A case runs on the first ranks of the launch, whose nodes
/// resolve the mesh size "nodes". Without a launch, or with too few ranks, a node has the number of
/// processes that the study gives. Throws ConfigError for an invalid grid.
std::vector<Case> make_cases(const Study& study, const std::optional<Topology>& launch = {});

/// Returns the case of the study that has these factors, which another launch gave to a case.
Case case_of(const Study& study, const nlohmann::json& factors);

/// Returns the files that the cases of a study read, for check_distinct(), and the machine file.
std::vector<FileUse> inputs_of(const StudyCases& work, const std::string& machine);

/// Returns true if some meshes depend on the number of ranks per node.
bool depends_on_nodes(const Study& study);

/// Returns true if a configuration key makes a difference on this mesh.
bool applies(const std::string& key, const std::string& strategy, const MeshShape& mesh);

/// Returns the plan of a configuration on this number of ranks, for what executes it. Throws
/// ConfigError for an invalid configuration.
Plan plan_of(const Config& config, Size ranks,
             const DeviceTraits& traits = traits_of_this_device());

/// Returns the factors that are configuration keys, each as "key=value".
std::vector<std::string> other_factors(const nlohmann::json& factors);

/// Sets label and id.
void name_case(Case& point);

/// Returns a 32-bit hash that distinguishes documents of a study.
std::uint32_t hash_of(const nlohmann::json& document);

}  // namespace tessera::bench

template <>
inline constexpr std::array<std::string_view, 2> tessera::names_of<tessera::bench::ScalingKind>{
    "strong", "weak"};
