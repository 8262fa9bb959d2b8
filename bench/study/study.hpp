// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include <tessera/base/view.hpp>
#include <tessera/config/config.hpp>

namespace tessera::bench {

/// What stays the same when ranks are added.
enum class ScalingKind : std::uint8_t {
  strong,  ///< the global batch
  weak,    ///< the batch of a rank
};

}  // namespace tessera::bench

template <>
inline constexpr std::array<std::string_view, 2> tessera::names_of<tessera::bench::ScalingKind>{
    "strong", "weak"};

namespace tessera::bench {

/// Enough for the peak of a core, or of a GPU, whose products are two orders of magnitude faster.
inline constexpr Size peak_gemm_size = std::is_same_v<MemSpace, Kokkos::HostSpace> ? 1024 : 8192;

/// How the step of a case is timed: in rounds, which are short blocks of steps, spread over the
/// launch.
struct MeasureRules {
  Size warm_up = 5;                 ///< steps, whenever a case has been set up
  Size rounds = 12;                 ///< of a launch
  Size launches = 1;                ///< a case is done when as many have measured it
  Size steps = 30;                  ///< of all rounds of a launch together, at least
  Size max_steps = 1000;            ///< at most, while a block is shorter than `block_seconds`
  double block_seconds = 0.05;      ///< of a round's steps
  Size keep_bytes = Size{1} << 30;  ///< memory of a rank for cases that stay set up between rounds
  Size instrumented_steps = 5;      ///< of the second run, which tells where the time goes
  Size checkpoints = 3;             ///< of a case with checkpoint.directory, which are timed
  Size gemm_size = peak_gemm_size;  ///< rows of the square product that is the machine's peak
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MeasureRules, warm_up, rounds, launches, steps, max_steps,
                                   block_seconds, keep_bytes, instrumented_steps, checkpoints,
                                   gemm_size)

struct Limits {
  double case_seconds = 600;  ///< of one case with its set-up; of one reference with its trials
  std::optional<Size> memory_bytes;  ///< device memory that a rank may use; unset: not predicted
  std::optional<double> vendor_peak_flops_per_second;  ///< of one rank, as its maker states
};

/// What the losses of a case are held against: those of a run that shards nothing.
struct VerifyRules {
  bool enabled = true;        ///< without it cases are "unverified"
  double tolerance = 1e-5;    ///< of losses, relative
  std::optional<Size> steps;  ///< that are compared; unset: all epochs of the configuration
  Size ranks = 1;             ///< of that run, at most; more than one are verified first
};

/// Factor or configuration key -> its values. All grids of a study together make its cases.
using Grid = std::map<std::string, std::vector<nlohmann::json>>;

/// Cases that have one of the given values in each of these factors are not run.
struct Exclusion {
  std::string reason;
  Grid where;
};

/// Which cases the others are compared with: those of the same work with this many ranks (unset:
/// the fewest that ran) and, where there are several, this strategy.
struct Baseline {
  std::optional<Size> ranks;
  std::string strategy = "data";
};

/// A sweep: what is the same in all its cases, what varies, how it is measured.
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
  std::uint64_t seed = 1;  ///< of the order of cases
};

struct StudySource {
  std::string file{};
  bool small = false;
  std::vector<std::string> overrides{};  ///< "measure.steps=10", "model.dtype=float64"
};

/// Reads a study (bench/README.md). Throws Error (usage) that names the key, its value and what is
/// allowed.
Study load_study(const StudySource& source);

}  // namespace tessera::bench
